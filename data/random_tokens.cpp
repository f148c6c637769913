#include "handgrad/data/random_tokens.h"

#include <limits>

#include <fmt/format.h>

#include "handgrad/core/error.h"

namespace handgrad::data {

RandomTokens::RandomTokens(std::int64_t vocab_size, const BatchPlan& plan, Random random)
    : Dataset(plan), vocab_size_(vocab_size), random_(random) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  if (vocab_size < 1 || vocab_size > kLargest)
    throw Error("random tokens",
                fmt::format("vocab_size must be from 1 to {}, got {}", kLargest, vocab_size));
}

void RandomTokens::fill(Batch& batch, const Position& position) {
  batch.resize(plan().rows, plan().cols);
  const std::int64_t row_tokens = batch.cols + 1;  // one more than inputs: the last target
  for (std::int64_t row = 0; row < batch.rows; ++row)
    for (std::int64_t i = 0; i < row_tokens; ++i) {
      const std::int64_t address = (plan().first_row + row) * row_tokens + i;
      const auto id =
          static_cast<std::int32_t>(random_.below(vocab_size_, position.step, position.micro_batch, address));
      const std::int64_t place = row * batch.cols + i;
      if (i < batch.cols) batch.inputs[static_cast<std::size_t>(place)] = id;
      if (i > 0) batch.targets[static_cast<std::size_t>(place - 1)] = id;
    }
}

}  // namespace handgrad::data
