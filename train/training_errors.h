// The errors that stop a training run, and the search for the first number that is not finite. Errors are thrown
// before any parameter is updated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "handgrad/core/autograd.h"
#include "handgrad/core/error.h"
#include "handgrad/nn/module.h"
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

/// How many numbers of `array` are NaN or infinite.
std::int64_t count_non_finite(const Array& array);

/// The first parameter whose numbers are not all finite.
NonFinite find_in_parameters(const optim::Parameters& parameters);
/// The first parameter whose gradients are not all finite.
NonFinite find_in_gradients(const optim::Parameters& parameters);

/// Remembers the first operation whose output is not finite or, during backward, whose output's gradient is not.
class NonFiniteObserver final : public GraphObserver {
 public:
  /// @{ Checks the numbers, unless an earlier operation had some that are not finite.
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

/// A loss or a gradient norm that is NaN or infinite. The weights are those before the step:
///
///     train: the loss of step 37 must be a finite number, got NaN
///       first   trf_blocks.1.norm2.scale [32], a parameter: 1 of 32 numbers is not finite
///       in      trf_blocks.1.norm2
///       Nothing was updated. The state before it is in runs/toy/checkpoints/step-000036.
class NonFiniteError : public Error {
 public:
  /// `quantity`: "loss" or "gradient norm"; `step` counts from 1.
  NonFiniteError(std::string quantity, double value, std::int64_t step, NonFinite first);

  /// Where the state before the step was saved: the text says so.
  void saved_in(const std::filesystem::path& checkpoint);

  const char* what() const noexcept override { return text_.c_str(); }  ///< the whole text
  const std::string& quantity() const { return quantity_; }             ///< "loss" or "gradient norm"
  double value() const { return value_; }                               ///< NaN or an infinity
  std::int64_t step() const { return step_; }  ///< the update that was not made, from 1
  /// The place of the first number that is not finite; empty when it could not be found.
  const NonFinite& first() const { return first_; }
  const std::string& tensor() const { return first_.tensor; }  ///< of first(): "trf_blocks.1.norm2.scale"

 private:
  std::string quantity_, text_;
  double value_;
  std::int64_t step_;
  NonFinite first_;
};

/// Trainable parameters that the loss does not depend on, found after the first backward pass:
///
///     train: trf_blocks.0.norm1.gain is trainable but got no gradient in step 1
///       gain [32]  of my_norm; the loss does not depend on it
///       also       trf_blocks.0.norm2.gain, final_norm.gain
///       try        use it in forward(), or allow it: `set` train.allow_unused=true
///       Nothing was updated and nothing was saved.
class UnusedParameterError : public Error {
 public:
  /// `unused` has at least one entry; `step` counts from 1.
  UnusedParameterError(const std::vector<nn::NamedParameter>& unused, std::int64_t step);

  const char* what() const noexcept override { return text_.c_str(); }  ///< the whole text
  /// The names of all of them, in the order of the model.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::string text_;
  std::vector<std::string> names_;
};

}  // namespace handgrad::train
