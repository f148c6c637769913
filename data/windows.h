// Rows cut out of a long text: the tokens of a window, and as targets the same moved on by one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "handgrad/data/dataset.h"
#include "handgrad/data/token_stream.h"

namespace handgrad::data {

/// Every row starts anywhere, with repetitions, as in nanoGPT. With n tokens the starts 0 .. n - cols - 1 are
/// equally likely, so that every window has its last target. A row depends on the seed, the position and its
/// number among the rows of all processes, and on nothing else.
class RandomWindows final : public Dataset {
 public:
  /// Error when the text is shorter than plan.cols + 1 tokens.
  RandomWindows(TokenStream stream, const BatchPlan& plan, AddressedRandom random);

  void fill(Batch& batch, const Position& position) override;
  /// As many batches as have at least as many targets as the text.
  std::int64_t batches_per_epoch() const override;

  /// How many windows there are to choose from: n - cols.
  std::int64_t starts() const { return stream_.size() - plan().cols; }

 private:
  TokenStream stream_;
  AddressedRandom random_;
};

/// Windows in order: starts 0, stride, 2 * stride, ... as long as the last target is there. Windows at the
/// end of a pass that fill no batch are left out of it; then the next pass begins. With `shuffle` each pass
/// has an order of its own, which depends on the seed and the number of the pass only, and other windows are
/// left out each time.
class SequentialWindows final : public Dataset {
 public:
  /// In which order the windows come.
  struct Order {
    std::int64_t stride = 0;  ///< tokens from one start to the next; 0: plan.cols, each token is read once
    bool shuffle = false;     ///< whether each pass has an order of its own
    AddressedRandom random;   ///< for shuffle only
  };

  /// Error when the text is shorter than plan.cols + 1 tokens, when its windows fill not one batch, and for a
  /// negative stride.
  SequentialWindows(TokenStream stream, const BatchPlan& plan, Order order);

  void fill(Batch& batch, const Position& position) override;
  std::int64_t batches_per_epoch() const override { return windows_ / plan().all_rows; }
  std::int64_t dropped_rows_per_epoch() const override { return windows_ % plan().all_rows; }

  /// Windows of the text: floor((n - cols - 1) / stride) + 1.
  std::int64_t windows() const { return windows_; }

 private:
  void shuffle_for(std::int64_t epoch);

  TokenStream stream_;
  Order order_;
  std::int64_t windows_;
  std::vector<std::int64_t>
      shuffled_;  // windows in the order of the pass shuffled_epoch_; empty when in order
  std::int64_t shuffled_epoch_ = -1;
};

/// random: RandomWindows; sequential: SequentialWindows.
enum class Sampling { random, sequential };

/// What a config says about windows.
struct WindowOptions {
  BatchPlan plan;                        ///< rows and tokens of the batches
  Sampling sampling = Sampling::random;  ///< random is the default of configs, too
  std::int64_t stride = 0;               ///< sequential only; 0: plan.cols
  bool shuffle = false;                  ///< sequential only
  AddressedRandom random;                ///< of starts, or of the shuffling
};

/// The dataset that the options ask for. Errors as its constructor.
std::unique_ptr<Dataset> make_windows(TokenStream stream, const WindowOptions& options);

/// A text cut into adjacent windows, so that each of its n - 1 targets occurs exactly once. Batches have `rows`
/// rows of `cols` tokens; the remaining rows make a smaller batch, and the remaining tokens a batch of one
/// shorter row:
///
///     EvaluationWindows(11 tokens, rows 2, cols 3)   2 x 3, 1 x 3, 1 x 1: 6 + 3 + 1 = 10 targets
///
/// Batches differ in size, so a loss over all of them is the mean over tokens: sum(loss * batch.tokens()) /
/// tokens().
class EvaluationWindows {
 public:
  /// `max_batches`: how many are used, from the first; 0: all. Error when the text is shorter than cols + 1 tokens,
  /// and when rows or cols is not positive.
  EvaluationWindows(TokenStream stream, std::int64_t rows, std::int64_t cols, std::int64_t max_batches = 0);

  /// How many there are, the smaller ones at the end included.
  std::int64_t batches() const { return batches_; }
  /// Targets of all batches together.
  std::int64_t tokens() const { return tokens_; }
  /// Batch `index` of 0 .. batches() - 1.
  void fill(Batch& batch, std::int64_t index) const;

 private:
  TokenStream stream_;
  std::int64_t rows_, cols_;
  std::int64_t full_rows_;  // windows of cols tokens
  std::int64_t batches_, tokens_;
};

}  // namespace handgrad::data
