// What `explain layer_norm` shows: the composed layer_norm run on the engine, row by row, and every number of it read from
// what the engine recorded.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/core/dtype.h"
#include "handgrad/train/explain/operation.h"

namespace handgrad::train::explain {

/// What is to be explained. All rows have one width C.
struct LayerNormQuestion {
  std::vector<Row> rows;         ///< x
  Row scale, shift;              ///< C numbers each
  std::vector<Row> upstream;     ///< d loss / d output, a row for each row of x
  double eps = 1e-5;             ///< at least 0
  double lr = 0.1;               ///< of the SGD step
  DType dtype = DType::float64;  ///< that all is computed in
  /// @{ Whether the step of SGD leaves it as it is.
  bool scale_frozen = false, shift_frozen = false;
  /// @}
};

/// One row's way through one recorded graph.
struct LayerNormPass {
  double sum = 0;                                    ///< of x
  double mean = 0;                                   ///< of x
  Row centered, squared;                             ///< the row's
  double sum_of_squared = 0;                         ///< of the centered numbers
  double variance = 0;                               ///< biased
  double under_root = 0;                             ///< variance + eps
  double deviation = 0;                              ///< its root
  Row normalized, output;                            ///< before and after scale and shift
  Row d_output, d_shift, d_scale, d_normalized;      ///< from the upstream gradient down
  Row d_centered_direct;                             ///< what the division gives to centered
  double d_deviation_sum = 0;                        ///< sum(d normalized * centered)
  double d_deviation = 0, d_variance = 0;            ///< scalars on the way
  Row d_squared, d_centered_by_squared, d_centered;  ///< the second way to centered, and both together
  Row d_x_direct;                                    ///< what centered gives to x
  double d_mean = 0;                                 ///< of the mean
  Row d_x_by_mean, d_x;                              ///< the second way to x, and both together
  // The closed form, worked out by the engine's operations.
  Row g, minus_mean_g, minus_projection, sum_of_terms;  ///< the three terms and their sum
  Row d_x_by_formula;                                   ///< the sum divided by the deviation
  double sum_g = 0;                                     ///< whose C-th part is mean(g)
};

/// All rows without eps, with eps, and one step of SGD with eps.
struct LayerNormAnswer {
  std::vector<LayerNormPass> without_eps, with_eps;                ///< a pass for each row
  Row d_scale_without_eps, d_shift_without_eps, d_scale, d_shift;  ///< sums over the rows
  Row new_scale, new_shift;                                        ///< after the step
  std::vector<Row> new_output;                                     ///< of the same x
  double loss = 0, new_loss = 0;  ///< sum(upstream * output), before and after the step
};

/// Runs the engine. Its errors, such as ValueError for a negative eps.
LayerNormAnswer answer(const LayerNormQuestion& question);

/// How a page speaks of its rows.
struct LayerNormWording {
  std::string title = {};  ///< first line; empty: made from the question
  std::vector<std::string> loss =
      {};             ///< what the loss and the upstream gradient are; empty: made from the question
  bool real = false;  ///< a row of a model: one set of numbers, with eps
  /// How far the model's own output, of the form that trains, is from this one; negative: there is no model.
  double model_difference = -1;
  std::string lr_note = {};  ///< after the learning rate
};

/// The page for people.
Sheet sheet(const LayerNormQuestion& question, const LayerNormAnswer& answer,
            const LayerNormWording& wording = {});
/// Every number in full precision: "eps", "scale", "shift", "rows", "backward", "backward_without_eps", "sgd".
nlohmann::ordered_json to_json(const LayerNormQuestion& question, const LayerNormAnswer& answer);
/// The book's lines, to paste into PyTorch, with the numbers that are to be expected.
std::string python(const LayerNormQuestion& question, const LayerNormAnswer& answer);

}  // namespace handgrad::train::explain
