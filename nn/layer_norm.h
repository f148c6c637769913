// LayerNorm: each row with mean 0 and variance 1, then a scale and a shift that are learned (Ba, Kiros and
// Hinton, "Layer normalization", 2016). RMSNorm: each row divided by the root of its mean square (Zhang and Sennrich,
// "Root mean square layer normalization", 2019); LayerNorm without mean and shift.
#pragma once

#include <cstdint>

#include "handgrad/core/ops.h"
#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// output = scale * normalized + shift, over the last dimension: x [..., width] to [..., width], each row
/// alone.
///
///     centered = x - mean        variance = mean(centered * centered), divided by width and not by width - 1
///     normalized = centered / sqrt(variance + eps)
///
///     parameter  shape    starts as  elsewhere
///     scale      [width]  ones       PyTorch weight, gamma in papers
///     shift      [width]  zeros      PyTorch bias, beta in papers
///
/// At first scale and shift change nothing. [2, 2, 6, 6] has mean 4 and variance 4: normalized is [-1, -1, 1,
/// 1], with eps = 1e-5 [-0.99999875, -0.99999875, 0.99999875, 0.99999875].
class LayerNorm final : public Layer {
 public:
  /// `eps` is not checked here: the first forward throws for a negative one.
  explicit LayerNorm(std::int64_t width, double eps = 1e-5, Form form = Form::fused)
      : scale(param("scale", {width}, constant(1))),
        shift(param("shift", {width}, constant(0))),
        eps_(eps),
        form_(form) {}

  Tensor forward(const Tensor& x) override {
    return form_ == Form::fused ? layer_norm(x, scale, shift, eps_)
                                : layer_norm_composed(x, scale, shift, eps_);
  }

  std::optional<NormFormula> norm() const override { return NormFormula{true, eps_, &scale, &shift}; }

  Parameter& scale;  ///< [width], starts as ones
  Parameter& shift;  ///< [width], starts as zeros

 private:
  double eps_;
  Form form_;
};

/// output = scale * x / sqrt(mean(x * x) + eps), over the last dimension: x [..., width] to [..., width].
///
///     parameter  shape    starts as  elsewhere
///     scale      [width]  ones       PyTorch weight, g or gamma in papers
///
/// [1, 7] has mean square 25: with eps = 0 the output is [0.2, 1.4].
class RMSNorm final : public Layer {
 public:
  /// `eps` is not checked here: the first forward throws for a negative one.
  explicit RMSNorm(std::int64_t width, double eps = 1e-5, Form form = Form::fused)
      : scale(param("scale", {width}, constant(1))), eps_(eps), form_(form) {}

  Tensor forward(const Tensor& x) override {
    return form_ == Form::fused ? rms_norm(x, scale, eps_) : rms_norm_composed(x, scale, eps_);
  }

  std::optional<NormFormula> norm() const override { return NormFormula{false, eps_, &scale}; }

  Parameter& scale;  ///< [width], starts as ones

 private:
  double eps_;
  Form form_;
};

}  // namespace handgrad::nn
