#include "handgrad/data/evaluation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "handgrad/core/error.h"

namespace handgrad::data {

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
