// Finding the first number that is not finite: the search after a loss turned into NaN.
#pragma once

#include <cstdint>
#include <string>

#include "handgrad/core/autograd.h"
#include "handgrad/optim/optimizer.h"

namespace handgrad::train {

/// A tensor with a NaN or an infinity.
struct NonFinite {
  std::string tensor;  ///< "trf_blocks.1.norm2.scale", or the operation it belongs to: "layer_norm"
  std::string what;    ///< "a parameter", "a gradient", "output", "gradient of the output"
  std::string
      module;   ///< path of the module that was running, or that has the parameter; empty outside of modules
  Shape shape;  ///< of the tensor
  std::int64_t count = 0;  ///< how many of its numbers are not finite; 0: nothing was found
  std::int64_t of = 0;     ///< how many it has
};

/// NaNs and infinities in `array`.
std::int64_t count_non_finite(const Array& array);

/// The first parameter whose numbers are not all finite.
NonFinite find_in_parameters(const optim::Parameters& parameters);
/// The first parameter whose gradient is not.
NonFinite find_in_gradients(const optim::Parameters& parameters);

/// Remembers the first output of an operation that is not finite, or else, during backward, the first gradient of one.
class NonFiniteObserver final : public GraphObserver {
 public:
  /// @{ Looks, unless something was found already.
  void recorded(const Node& node, const Array& y) override { look(node, y, "output"); }
  void differentiating(const Node& node, const Array& dy) override {
    look(node, dy, "gradient of the output");
  }
  /// @}
  const NonFinite& first() const { return first_; }  ///< count 0: nothing was found

 private:
  void look(const Node& node, const Array& array, const char* what);

  NonFinite first_;
};

}  // namespace handgrad::train
