// What a dataset hands to a model: plain numbers, no tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace handgrad::data {

/// `rows` rows of `cols` token ids, row-major, and for each of them the id that should come next.
struct Batch {
  std::int64_t rows = 0;              ///< B
  std::int64_t cols = 0;              ///< T
  std::vector<std::int32_t> inputs;   ///< [rows, cols]
  std::vector<std::int32_t> targets;  ///< [rows, cols]

  std::int64_t tokens() const { return rows * cols; }  ///< targets

  /// Makes room. Storage only grows, so that a batch that is filled again and again allocates once.
  void resize(std::int64_t new_rows, std::int64_t new_cols) {
    rows = new_rows;
    cols = new_cols;
    inputs.resize(static_cast<std::size_t>(tokens()));
    targets.resize(static_cast<std::size_t>(tokens()));
  }

  /// Row `row` from cols + 1 tokens in a row: all but the last are inputs, all but the first are targets.
  void set_row(std::int64_t row, const std::int32_t* tokens) {
    std::copy_n(tokens, cols, inputs.begin() + row * cols);
    std::copy_n(tokens + 1, cols, targets.begin() + row * cols);
  }
};

/// How a run cuts its reading: every step takes `micro_batches` batches of `rows` rows of `cols` tokens.
struct BatchPlan {
  std::int64_t rows = 1;           ///< of one micro-batch in this process
  std::int64_t cols = 1;           ///< tokens of a row: the context length
  std::int64_t micro_batches = 1;  ///< gradient accumulation
  std::int64_t first_row = 0;      ///< this process's first among the rows of all processes
  std::int64_t all_rows = 0;       ///< of one micro-batch in all processes together; 0: only these

  std::int64_t tokens() const { return rows * cols * micro_batches; }  ///< of an update, in this process
};

/// Which batch of a run. A dataset gives the same rows for the same position, so this is all that has to be
/// kept to go on after an interruption.
struct Position {
  std::int64_t step = 0;         ///< 0 for the batch of the first update
  std::int64_t micro_batch = 0;  ///< 0 .. micro_batches - 1
};

}  // namespace handgrad::data
