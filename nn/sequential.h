// Sequential: layers one after another.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// Applies its layers in order; they are named "0", "1", ... as in PyTorch. Without layers it returns x.
///
///     nn::Sequential layers;
///     layers.add<nn::Linear>(4, 16);
///     layers.add<nn::Gelu>();
///     layers.add<nn::Linear>(16, 4);      // parameters 0.weight, 0.bias, 2.weight, 2.bias
class Sequential final : public Layer {
 public:
  /// @{ Appends a layer, which gets the next number as its name; a reference to it.
  template <class T, class... Args>
  T& add(Args&&... args) {
    return add(std::make_unique<T>(std::forward<Args>(args)...));
  }
  template <class T>
  T& add(std::unique_ptr<T> layer) {
    T& added = child(std::to_string(layers_.size()), std::move(layer));
    layers_.push_back(&added);
    return added;
  }
  /// @}

  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (Layer* layer : layers_) y = (*layer)(y);
    return y;
  }

  std::size_t size() const { return layers_.size(); }  ///< number of layers
  /// Layer number `i`, from 0; std::out_of_range when there is none.
  Layer& operator[](std::size_t i) { return *layers_.at(i); }

 private:
  std::vector<Layer*> layers_;
};

}  // namespace handgrad::nn
