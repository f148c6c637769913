// The lines of a LayerNorm's arithmetic, read from the graph that the engine records of its composed form.
#pragma once

#include "handgrad/core/array.h"
#include "handgrad/train/explain/graph.h"

namespace handgrad::train::explain {

/// The operations of one layer_norm_composed, in the order in which it records them.
struct LayerNormOperations {
  /// GraphError when the graph has another form.
  explicit LayerNormOperations(const RecordedGraph& graph);

  const RecordedOperation &mean, &centered, &squared, &variance, &under_root, &deviation, &normalized,
      &scaled, &output;
};

/// What a LayerNorm works out of each row on its way.
struct LayerNormLines {
  Array mean, variance, deviation;  ///< [..., 1]; the deviation has eps under its root
  Array normalized;                 ///< [..., C], before scale and shift
};

/// The lines for the rows of `x` [..., C], in float64 whatever its type, as the statistics of the fused layer_norm are.
LayerNormLines layer_norm_lines(const Array& x, double eps);

}  // namespace handgrad::train::explain
