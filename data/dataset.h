// Batches, plain numbers without tensors, and where they come from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace handgrad::data {

/// `rows` rows of `cols` token ids, row-major, and the id that should follow each of them.
struct Batch {
  std::int64_t rows = 0;              ///< B
  std::int64_t cols = 0;              ///< T
  std::vector<std::int32_t> inputs;   ///< [rows, cols]
  std::vector<std::int32_t> targets;  ///< [rows, cols]

  std::int64_t tokens() const { return rows * cols; }  ///< targets

  /// Sets the size. Storage only grows, so a batch that is reused allocates once.
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

/// Which batch of a run. A dataset returns the same rows for the same position, so a checkpoint needs nothing else of
/// it.
struct Position {
  std::int64_t step = 0;         ///< 0 for the batch of the first update
  std::int64_t micro_batch = 0;  ///< 0 .. micro_batches - 1
};

/// Random numbers addressed by seed, step, micro-batch and row: equal addresses give equal numbers (core/random.h).
struct AddressedRandom {
  std::uint64_t seed = 0;  ///< of the run

  /// 0 .. n - 1 (n > 0). The bias of the remainder is below n / 2^64.
  std::int64_t below(std::int64_t n, std::int64_t step, std::int64_t micro_batch, std::int64_t row) const;
};

/// Batches of a run in one of several orders. `fill` depends on the position alone: not on what was read
/// before, and not on the number of processes, which share the rows of one global batch.
class Dataset {
 public:
  /// Error when a number of the plan is out of range.
  explicit Dataset(const BatchPlan& plan);
  virtual ~Dataset() = default;

  /// Writes the rows of this process at `position` into `batch`, which is resized; without an allocation when
  /// it had that size before.
  virtual void fill(Batch& batch, const Position& position) = 0;

  /// Micro-batches in one pass over the data; at least 1.
  virtual std::int64_t batches_per_epoch() const = 0;
  /// Rows that one pass leaves out because they fill no batch.
  virtual std::int64_t dropped_rows_per_epoch() const { return 0; }

  /// The smallest number of steps that reads `epochs` passes; a step may end one pass and begin the next.
  std::int64_t steps_for_epochs(std::int64_t epochs) const;

  const BatchPlan& plan() const { return plan_; }  ///< with all_rows filled in

 protected:
  /// Counts the micro-batches of a run from 0.
  std::int64_t batch_index(const Position& position) const {
    return position.step * plan_.micro_batches + position.micro_batch;
  }

 private:
  BatchPlan plan_;  // all_rows filled in
};

/// Rows of ids drawn uniformly from 0 to vocab_size - 1; targets are the same row shifted by one.
/// The best possible loss is ln(vocab_size).
class RandomTokens final : public Dataset {
 public:
  /// Error when vocab_size is not positive or not an int32.
  RandomTokens(std::int64_t vocab_size, const BatchPlan& plan, AddressedRandom random);

  void fill(Batch& batch, const Position& position) override;
  std::int64_t batches_per_epoch() const override { return 1; }

 private:
  std::int64_t vocab_size_;
  AddressedRandom random_;
};

}  // namespace handgrad::data
