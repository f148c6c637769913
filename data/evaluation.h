// The rows over which a loss is measured.
#pragma once

#include <cstdint>

#include "handgrad/data/batch.h"
#include "handgrad/data/token_stream.h"

namespace handgrad::data {

/// A text as windows side by side, so that each of its n - 1 targets comes exactly once. Batches have `rows`
/// rows of `cols` tokens; what is left makes a batch with fewer rows, and the tokens left after that a batch
/// of one shorter row:
///
///     EvaluationWindows(11 tokens, rows 2, cols 3)   2 x 3, 1 x 3, 1 x 1: 6 + 3 + 1 = 10 targets
///
/// Batches differ in size, so a loss over all of them is the mean over tokens: sum(loss * batch.tokens()) /
/// tokens().
class EvaluationWindows {
 public:
  /// `max_batches`: only the first so many; 0 means all. Error when the text is shorter than cols + 1 tokens,
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
