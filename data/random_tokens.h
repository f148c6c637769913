// Tokens without meaning, for measuring speed.
#pragma once

#include <cstdint>

#include "handgrad/data/dataset.h"

namespace handgrad::data {

/// Rows of ids that are equally likely from 0 to vocab_size - 1; targets are the same row moved on by one.
/// The best possible loss is ln(vocab_size).
class RandomTokens final : public Dataset {
 public:
  /// Error when vocab_size is not positive or not an int32.
  RandomTokens(std::int64_t vocab_size, const BatchPlan& plan, Random random);

  void fill(Batch& batch, const Position& position) override;
  std::int64_t batches_per_epoch() const override { return 1; }

 private:
  std::int64_t vocab_size_;
  Random random_;
};

}  // namespace handgrad::data
