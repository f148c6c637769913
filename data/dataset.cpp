#include "handgrad/data/dataset.h"

#include <fmt/format.h>
#include <limits>

#include "handgrad/core/error.h"
#include "handgrad/core/random.h"

namespace handgrad::data {
namespace {

constexpr std::uint64_t kDataStream =
    0x64617461;  // "data": separate from the streams of dropout and first weights

BatchPlan checked(BatchPlan plan) {
  if (plan.all_rows == 0) plan.all_rows = plan.first_row + plan.rows;
  const bool positive = plan.rows > 0 && plan.cols > 0 && plan.micro_batches > 0;
  if (!positive || plan.first_row < 0 || plan.first_row + plan.rows > plan.all_rows)
    throw Error("dataset", "a batch needs at least one row, column and micro-batch, and rows among all rows",
                {{"rows", fmt::to_string(plan.rows)},
                 {"cols", fmt::to_string(plan.cols)},
                 {"micro_batches", fmt::to_string(plan.micro_batches)},
                 {"first_row", fmt::to_string(plan.first_row)},
                 {"all_rows", fmt::to_string(plan.all_rows)}});
  return plan;
}

}  // namespace

std::int64_t AddressedRandom::below(std::int64_t n, std::int64_t step, std::int64_t micro_batch,
                                    std::int64_t row) const {
  const auto block =
      random_key(seed, kDataStream, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(micro_batch))
          .block(static_cast<std::uint64_t>(row));
  const std::uint64_t bits = std::uint64_t{block[0]} << 32 | block[1];
  return static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(n));
}

Dataset::Dataset(const BatchPlan& plan) : plan_(checked(plan)) {}

std::int64_t Dataset::steps_for_epochs(std::int64_t epochs) const {
  return (epochs * batches_per_epoch() + plan_.micro_batches - 1) / plan_.micro_batches;
}

// ---- RandomTokens

RandomTokens::RandomTokens(std::int64_t vocab_size, const BatchPlan& plan, AddressedRandom random)
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
