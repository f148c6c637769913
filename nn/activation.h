// Elementwise layers without parameters: activations and dropout. The formulas are in core/ops.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/core/ops.h"
#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// GELU (Hendrycks and Gimpel, 2016); the tanh form is the book's and GPT-2's. gelu(1) = 0.8411920 (exact:
/// 0.8413447).
class Gelu final : public Layer {
 public:
  /// `form`: see handgrad::GeluForm; the book's and GPT-2's is the default.
  explicit Gelu(handgrad::GeluForm form = handgrad::GeluForm::tanh) : form_(form) {}
  Tensor forward(const Tensor& x) override { return gelu(x, form_); }

 private:
  handgrad::GeluForm form_;
};

/// max(x, 0)
class Relu final : public Layer {
 public:
  Tensor forward(const Tensor& x) override { return relu(x); }
};

/// x / (1 + exp(-x)), also called swish. silu(1) = 0.7310586.
class Silu final : public Layer {
 public:
  Tensor forward(const Tensor& x) override { return silu(x); }
};

/// (exp(x) - exp(-x)) / (exp(x) + exp(-x)). tanh(1) = 0.7615942.
class Tanh final : public Layer {
 public:
  Tensor forward(const Tensor& x) override { return tanh(x); }
};

/// 1 / (1 + exp(-x))
class Sigmoid final : public Layer {
 public:
  Tensor forward(const Tensor& x) override { return sigmoid(x); }
};

/// y = x, without parameters: what a config's `"norm": {"type": "none"}` uses instead of each norm.
class Identity final : public Layer {
 public:
  Tensor forward(const Tensor& x) override { return x; }
};

/// gelu, gelu_exact, relu, sigmoid, silu, tanh: the names that configs use.
std::vector<std::string> activation_names();
/// ValueError for another name, with the one that was probably meant.
std::unique_ptr<Layer> make_activation(std::string_view name);

/// Dropout (Srivastava et al., 2014): each number is set to 0 with probability `rate`, else divided by 1 - rate, which
/// keeps the mean. When not training() the output is x itself. No parameters. The seed, the module's path, the count
/// of calls and the step decide which numbers (core/random.h). With rate 0.5, [1, 2, 3, 4] may become [2, 0, 6, 0].
class Dropout final : public Layer {
 public:
  /// ValueError unless 0 <= rate < 1.
  explicit Dropout(double rate) : rate_(checked_rate("dropout", rate)) {}

  Tensor forward(const Tensor& x) override { return training() && rate_ > 0 ? dropout(x, rate_) : x; }

  double rate() const { return rate_; }  ///< the probability of 0

  /// Returns `rate`. ValueError, in the name of `what`, unless 0 <= rate < 1.
  static double checked_rate(const char* what, double rate);

 private:
  double rate_;
};

}  // namespace handgrad::nn
