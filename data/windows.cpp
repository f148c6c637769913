#include "handgrad/data/windows.h"

#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <algorithm>

#include "handgrad/core/error.h"

namespace handgrad::data {
RandomWindows::RandomWindows(TokenStream stream, const BatchPlan& plan, AddressedRandom random)
    : Dataset(plan), stream_(std::move(stream)), random_(random) {
  require_one_row(stream_, plan.cols);
}

void RandomWindows::fill(Batch& batch, const Position& position) {
  batch.resize(plan().rows, plan().cols);
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    const std::int64_t global_row = plan().first_row + row;
    const std::int64_t start = random_.below(starts(), position.step, position.micro_batch, global_row);
    batch.set_row(row, stream_.data() + start);
  }
}

std::int64_t RandomWindows::batches_per_epoch() const {
  const std::int64_t targets = stream_.size() - 1;
  const std::int64_t targets_of_batch = plan().all_rows * plan().cols;
  return (targets + targets_of_batch - 1) / targets_of_batch;
}

SequentialWindows::SequentialWindows(TokenStream stream, const BatchPlan& plan, Order order)
    : Dataset(plan), stream_(std::move(stream)), order_(order), windows_(0) {
  require_one_row(stream_, plan.cols);
  if (order_.stride == 0) order_.stride = plan.cols;
  if (order_.stride < 0)
    throw Error(stream_.name(), fmt::format("stride must be at least 1, got {}", order_.stride));
  windows_ = (stream_.size() - plan.cols - 1) / order_.stride + 1;
  if (batches_per_epoch() == 0)
    throw Error(stream_.name(),
                fmt::format("one batch needs {} windows, the text has {}", this->plan().all_rows, windows_),
                {{"tokens", fmt::to_string(stream_.size())},
                 {"context_length", fmt::to_string(plan.cols)},
                 {"stride", fmt::to_string(order_.stride)}},
                "a smaller batch_size or stride, or random sampling");
  if (!order_.shuffle) return;
  shuffled_.resize(static_cast<std::size_t>(windows_));
}

// Fisher and Yates; starting from the plain order makes a pass independent of the passes before it.
void SequentialWindows::shuffle_for(std::int64_t epoch) {
  if (epoch == shuffled_epoch_) return;
  std::iota(shuffled_.begin(), shuffled_.end(), std::int64_t{0});
  for (std::int64_t i = windows_ - 1; i > 0; --i) {
    const std::int64_t other = order_.random.below(i + 1, epoch, 0, i);
    std::swap(shuffled_[static_cast<std::size_t>(i)], shuffled_[static_cast<std::size_t>(other)]);
  }
  shuffled_epoch_ = epoch;
}

void SequentialWindows::fill(Batch& batch, const Position& position) {
  batch.resize(plan().rows, plan().cols);
  const std::int64_t index = batch_index(position);
  if (order_.shuffle) shuffle_for(index / batches_per_epoch());
  const std::int64_t first = index % batches_per_epoch() * plan().all_rows + plan().first_row;
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    std::int64_t window = first + row;
    if (order_.shuffle) window = shuffled_[static_cast<std::size_t>(window)];
    batch.set_row(row, stream_.data() + window * order_.stride);
  }
}

std::unique_ptr<Dataset> make_windows(TokenStream stream, const WindowOptions& options) {
  if (options.sampling == Sampling::random)
    return std::make_unique<RandomWindows>(std::move(stream), options.plan, options.random);
  return std::make_unique<SequentialWindows>(
      std::move(stream), options.plan,
      SequentialWindows::Order{options.stride, options.shuffle, options.random});
}

// ---- EvaluationWindows

EvaluationWindows::EvaluationWindows(TokenStream stream, std::int64_t rows, std::int64_t cols,
                                     std::int64_t max_batches)
    : stream_(std::move(stream)), rows_(rows), cols_(cols), full_rows_(0), batches_(0), tokens_(0) {
  if (rows < 1 || cols < 1 || max_batches < 0)
    throw Error(stream_.name(),
                "evaluation needs at least one row and column, and no negative number of batches",
                {{"rows", fmt::to_string(rows)},
                 {"cols", fmt::to_string(cols)},
                 {"max_batches", fmt::to_string(max_batches)}});
  require_one_row(stream_, cols);
  const std::int64_t targets = stream_.size() - 1;
  full_rows_ = targets / cols;
  const std::int64_t full_row_batches = (full_rows_ + rows - 1) / rows;
  batches_ = full_row_batches + (targets % cols > 0 ? 1 : 0);
  if (max_batches > 0) batches_ = std::min(batches_, max_batches);
  tokens_ = batches_ > full_row_batches ? targets : std::min(batches_ * rows, full_rows_) * cols;
}

void EvaluationWindows::fill(Batch& batch, std::int64_t index) const {
  const std::int64_t first_row = index * rows_;
  if (first_row >= full_rows_) {  // the batch of the shorter row
    batch.resize(1, stream_.size() - 1 - full_rows_ * cols_);
    batch.set_row(0, stream_.data() + full_rows_ * cols_);
    return;
  }
  batch.resize(std::min(rows_, full_rows_ - first_row), cols_);
  for (std::int64_t row = 0; row < batch.rows; ++row)
    batch.set_row(row, stream_.data() + (first_row + row) * cols_);
}

}  // namespace handgrad::data
