// FeedForward: the part of a transformer block that works on each token alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "handgrad/nn/activation.h"
#include "handgrad/nn/linear.h"
#include "handgrad/nn/sequential.h"

namespace handgrad::nn {

/// x [..., width] to [..., hidden], an activation, and back to [..., width]; the book's form, hidden = 4 *
/// width.
///
///     parameter        shape            elsewhere (GPT-2)
///     layers.0.weight  [hidden, width]  mlp.c_fc.weight, transposed
///     layers.0.bias    [hidden]         mlp.c_fc.bias
///     layers.2.weight  [width, hidden]  mlp.c_proj.weight, transposed
///     layers.2.bias    [width]          mlp.c_proj.bias
class FeedForward final : public Layer {
 public:
  /// `activation` as in nn/activation.h.
  FeedForward(std::int64_t width, std::int64_t hidden, std::string_view activation = "gelu")
      : layers(child<Sequential>("layers")) {
    layers.add<Linear>(width, hidden);
    layers.add(make_activation(activation));
    layers.add<Linear>(hidden, width).end_branch();
  }
  /// hidden = 4 * width, gelu.
  explicit FeedForward(std::int64_t width) : FeedForward(width, 4 * width) {}

  Tensor forward(const Tensor& x) override { return layers(x); }

  Sequential& layers;  ///< Linear, activation, Linear: children 0, 1, 2
};

}  // namespace handgrad::nn
