// Statistics: a parameter after a step in a few numbers. A recording keeps them of every step.
#pragma once

#include <cstdint>
#include <vector>

#include "handgrad/core/array.h"
#include "handgrad/core/parameter.h"

namespace handgrad::train {

/// Mean, spread and extremes of one state of a parameter. std divides by n, like the norm.
struct Statistics {
  /// @{ Over all elements.
  double mean = 0, std = 0, min = 0, max = 0;
  /// @}
  std::uint64_t farthest = 0;  ///< index of the element farthest from its start; the first of equals
  double farthest_value = 0;   ///< that element
};
/// `start` is what the elements are measured from, of the same size, or empty: 0.
Statistics statistics(const std::vector<double>& value, const std::vector<double>& start);
/// Root of the sum of squares.
double norm_of(const std::vector<double>& numbers);

/// What is kept of one parameter after one step.
struct StepStatistics {
  Statistics value;          ///< after the update, measured from the state before training
  double gradient_norm = 0;  ///< of the gradient that made the step, before clipping; -1: there was none
  double update_norm = 0;    ///< of value minus the value before; -1 at step 0
};
/// The statistics of a parameter as it is now, the same bits as from its recorded numbers, without an allocation.
/// `start`: its value before training. `before`: its value before the update; nullptr before the first step, which
/// leaves out its gradient too.
StepStatistics step_statistics(const Parameter& parameter, const Array& start, const Array* before);

}  // namespace handgrad::train
