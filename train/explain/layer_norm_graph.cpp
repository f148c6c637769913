#include "handgrad/train/explain/layer_norm_graph.h"

#include "handgrad/core/ops.h"

namespace handgrad::train::explain {

LayerNormOperations::LayerNormOperations(const RecordedGraph& graph)
    : mean(graph.at(0, "mean")),
      centered(graph.at(1, "sub")),
      squared(graph.at(2, "square")),
      variance(graph.at(3, "mean")),
      under_root(graph.at(4, "add")),
      deviation(graph.at(5, "sqrt")),
      normalized(graph.at(6, "div")),
      scaled(graph.at(7, "mul")),
      output(graph.at(8, "add")) {}

LayerNormLines layer_norm_lines(const Array& x, double eps) {
  const Shape features({x.shape().last()});
  RecordedGraph graph;
  {
    const GraphObserverGuard guard(graph);
    layer_norm_composed(Tensor::constant(x.to(DType::float64)).requires_grad(),
                        Tensor::ones(features, DType::float64), Tensor::zeros(features, DType::float64), eps);
  }
  const LayerNormOperations lines(graph);
  return {lines.mean.y, lines.variance.y, lines.deviation.y, lines.normalized.y};
}

}  // namespace handgrad::train::explain
