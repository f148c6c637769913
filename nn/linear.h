// Linear: y = x W^T + b over the last dimension.
#pragma once

#include <cmath>
#include <cstdint>

#include "handgrad/core/ops.h"
#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// x [..., in] to y [..., out].
///
///     parameter  shape      starts as (by default)      elsewhere
///     weight     [out, in]  uniform in +-1 / sqrt(in)   PyTorch weight; in GPT-2 [in, out]
///     bias       [out]      the same, or no bias        PyTorch bias
///
/// With weight [[1, 2], [0, -1]] and bias [10, 20], x = [3, 4] gives y = [1*3 + 2*4 + 10, -4 + 20] = [21,
/// 16].
class Linear final : public Layer {
 public:
  /// From `in` numbers to `out`; weight and bias start uniform in +-1 / sqrt(in).
  Linear(std::int64_t in, std::int64_t out, bool with_bias = true)
      : weight(param("weight", {out, in}, by_width(in))),
        bias(with_bias ? &param("bias", {out}, by_width(in)) : nullptr) {}
  /// Uses the weight [out, in] of another module of the same model; no bias.
  explicit Linear(Parameter& shared_weight) : weight(tie("weight", shared_weight)), bias(nullptr) {}

  Tensor forward(const Tensor& x) override {
    return bias != nullptr ? linear(x, weight, *bias) : linear(x, weight);
  }

  std::int64_t in() const { return weight.size(1); }   ///< size of the last dimension of x
  std::int64_t out() const { return weight.size(0); }  ///< size of the last dimension of y

  /// Marks the last step of a residual branch, x + branch(x), which Init::gpt2 starts smaller.
  void end_branch() {
    if (Distribution* const drawn = start(weight)) drawn->ends_branch = true;
  }

  Parameter& weight;      ///< [out, in]
  Parameter* const bias;  ///< [out]; nullptr without bias

 private:
  static Distribution by_width(std::int64_t in) {
    return as_default(uniform(1 / std::sqrt(static_cast<double>(in))));
  }
};

}  // namespace handgrad::nn
