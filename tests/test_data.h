// What the tests of data share: a text that counts, a generator, and the text of an error.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "handgrad/core/error.h"
#include "handgrad/data/dataset.h"
#include "handgrad/data/token_stream.h"

namespace handgrad::data::testing {

using Ids = std::vector<std::int32_t>;

// A text whose token at place i is i, so that a row tells where it was cut out.
inline TokenStream count_to(std::int32_t n) {
  Ids ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return {ids, "text"};
}

inline constexpr AddressedRandom kRandom{2266};

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
