// Identity: nothing at all, where a model expects a layer.
#pragma once

#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// y = x, without parameters: what a config's `"norm": {"type": "none"}` uses instead of each norm.
class Identity final : public Layer {
 public:
  Tensor forward(const Tensor& x) override { return x; }
};

}  // namespace handgrad::nn
