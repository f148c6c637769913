// The numbers of layer_norm's sheet: each row through the composed operation on the engine, all rows, and one step.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/core/parameter.h"
#include "handgrad/view/explain/operation.h"
#include "handgrad/view/recorded.h"

namespace handgrad::view::explain {

/// The options of the request, for rows of `width` features.
struct LayerNormOperands {
  explicit LayerNormOperands(const Request& request);

  std::size_t width;
  Numbers scale, shift;
  std::vector<Numbers> upstream;  ///< d loss / d output, for each row of x
  double eps, lr;
};

/// One row through layer_norm_composed, forward and backward. It refers to its own graph, so it is not moved.
struct LayerNormPass {
  LayerNormPass(const Request& request, const LayerNormOperands& operands, std::size_t row, double eps);
  LayerNormPass(const LayerNormPass&) = delete;
  LayerNormPass& operator=(const LayerNormPass&) = delete;

  Tensor x;
  RecordedGraph recorded;
  LayerNormGraph g;
  // The closed form: gradient = scale * d output, the two other terms, the sum of the three, and that divided by the
  // deviation.
  Array gradient, minus_mean, minus_projection, sum_of_terms, dx_by_formula;
};

/// All rows: each by itself, and together with parameters, so that their gradients add up as in training.
struct LayerNormPasses {
  LayerNormPasses(const Request& request, const LayerNormOperands& operands, double eps);

  std::deque<LayerNormPass> each;
  Parameter scale, shift;
  Tensor output;
  Array d_scale, d_shift;
};

/// What one step of SGD changes.
struct LayerNormStep {
  Array output;                            ///< of the same x
  double loss_before = 0, loss_after = 0;  ///< sum(upstream * output)
};
/// Steps the scale and shift of `passes`.
LayerNormStep layer_norm_step(const Request& request, const LayerNormOperands& operands,
                              LayerNormPasses& passes, bool scale_frozen, bool shift_frozen);

/// Every number in full precision: "eps", "scale", "shift", "rows", "backward", "backward_without_eps", "sgd".
nlohmann::ordered_json layer_norm_json(const Request& request, const LayerNormOperands& operands,
                                       const LayerNormPasses& with_eps, const LayerNormPasses& without_eps,
                                       const LayerNormStep& step);
/// The book's lines in PyTorch, with the numbers to expect.
std::string layer_norm_python(const Request& request, const LayerNormOperands& operands,
                              const LayerNormPasses& passes);

/// Whether every number is `value`.
bool all_are(const Numbers& numbers, double value);

}  // namespace handgrad::view::explain
