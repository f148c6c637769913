// A custom norm: divides each row by the mean of its absolute values, then multiplies by a trained gain.
#pragma once

#include <handgrad/core/ops.h>
#include <handgrad/nn/registry.h>

/// output = gain * x / (mean(|x|) + eps), over the last dimension: x [..., width] to [..., width].
class MyNorm final : public handgrad::nn::Layer {
 public:
  MyNorm(std::int64_t width, double eps)
      : gain(param("gain", {width}, handgrad::nn::constant(1))), eps_(eps) {}

  handgrad::Tensor forward(const handgrad::Tensor& x) override {
    const handgrad::Tensor size = relu(x) + relu(-x);  // |x|
    return gain * x / (mean(size, handgrad::kLast, handgrad::KeepDim::yes) + eps_);
  }

  handgrad::Parameter& gain;  // [width]

 private:
  double eps_;
};

inline std::unique_ptr<handgrad::nn::Layer> make_my_norm(handgrad::io::Fields& fields, std::int64_t width) {
  return std::make_unique<MyNorm>(
      width, fields.number("eps", {.doc = "added to the mean", .fallback = 1e-5, .at_least = 0}));
}
