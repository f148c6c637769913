// Clipping by global norm: all gradients together as one long vector.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "handgrad/optim/optimizer.h"

namespace handgrad::optim {

/// The Euclidean norm of all gradients together.
struct GradientNorm {
  double norm = 0;  ///< not finite when first_non_finite is set
  /// Place in the list of the first parameter whose gradient has a NaN or an infinity; none when all are
  /// finite.
  std::optional<std::size_t> first_non_finite;
};

/// Computes norms; keeps its work space, so that it allocates once.
class GlobalNorm {
 public:
  /// Over the trainable parameters that have a gradient; `parameters` lists each once. Squares are summed in
  /// double, in an order that depends on the shapes only. Where even a double's square overflows the sum is
  /// made again of scaled numbers, so the norm of finite gradients is finite whenever it is below the largest
  /// double.
  GradientNorm operator()(const Parameters& parameters);

 private:
  double sum_of_squares(const Array& gradient);

  std::vector<double> partial_sums_;  // of the gradient at work
};

/// What gradients of this norm are multiplied with so that their norm does not exceed `max_norm`:
/// max_norm / (norm + 1e-6) when norm > max_norm, else 1 (PyTorch's clip_grad_norm_). max_norm 0: off,
/// always 1.
double clip_factor(double norm, double max_norm);

}  // namespace handgrad::optim
