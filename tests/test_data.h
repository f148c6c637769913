// What the tests of data share: a text that counts, a generator, and the text of an error.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "handgrad/data/dataset.h"
#include "handgrad/data/error.h"
#include "handgrad/data/token_stream.h"

namespace handgrad::data::testing {

using Ids = std::vector<std::int32_t>;

// A text whose token at place i is i, so that a row tells where it was cut out.
inline TokenStream count_to(std::int32_t n) {
  Ids ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return {ids, "text"};
}

// SplitMix64 over the parts of the address: equally spread and unlike the generator of the engine.
inline std::uint64_t mix(std::uint64_t seed, std::uint64_t step, std::uint64_t micro_batch,
                         std::uint64_t row) {
  std::uint64_t state = seed;
  for (const std::uint64_t part : {step, micro_batch, row}) {
    state += part + 0x9E3779B97F4A7C15u;
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
    state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
    state ^= state >> 31;
  }
  return state;
}

inline constexpr RandomSource kRandom{mix, 2266};

inline BatchPlan plan_of(std::int64_t rows, std::int64_t cols) {
  BatchPlan plan;
  plan.rows = rows;
  plan.cols = cols;
  return plan;
}

template <typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace handgrad::data::testing
