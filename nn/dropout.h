// Dropout: while training, numbers are left out at random (Srivastava et al., "Dropout", 2014).
#pragma once

#include "handgrad/core/ops.h"
#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// Each number is 0 with probability `rate`, else divided by 1 - rate, so that the mean stays. When not
/// training() the output is x itself. No parameters. Which numbers: by seed, module path, count of calls and
/// step, see core/random.h. With rate 0.5, [1, 2, 3, 4] may become [2, 0, 6, 0].
class Dropout final : public Layer {
 public:
  /// ValueError unless 0 <= rate < 1.
  explicit Dropout(double rate) : rate_(checked_rate("dropout", rate)) {}

  Tensor forward(const Tensor& x) override { return training() && rate_ > 0 ? dropout(x, rate_) : x; }

  double rate() const { return rate_; }  ///< the probability of 0

  /// `rate`, once it is known to be one; ValueError in the name of `what` otherwise.
  static double checked_rate(const char* what, double rate);

 private:
  double rate_;
};

}  // namespace handgrad::nn
