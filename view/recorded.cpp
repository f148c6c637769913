#include "handgrad/view/recorded.h"

#include <algorithm>
#include <cmath>

#include "handgrad/core/error.h"
#include "handgrad/core/ops.h"

namespace handgrad::view {
namespace {

/// `rstd` is the engine's word.
std::string shown_name(std::string_view op, std::string_view saved) {
  if (saved == "rstd") return op == "layer_norm" ? "1 / deviation" : "1 / root";
  return std::string(saved);
}

}  // namespace

double norm_of(const Array& array) {
  double sum = 0;
  dispatch(array.dtype(), [&](auto zero) {
    const auto* numbers = array.data<decltype(zero)>();
    for (std::int64_t i = 0; i < array.numel(); ++i)
      sum += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
  });
  return std::sqrt(sum);
}

bool RecordedGraph::wanted(const Node& node) const {
  const std::string& running = node.scope().path;
  return path_.empty() || running == path_ || running.starts_with(path_ + ".");
}

void RecordedGraph::recorded(const Node& node, const Array& y) {
  if (!wanted(node)) return;
  RecordedOperation operation;
  operation.op = node.op();
  operation.module = node.scope().path;
  operation.order = node.order();
  operation.shape = y.shape();
  for (int i = 0; i < node.input_count(); ++i) {
    const GradSlot* input = node.input(i);
    const bool computed = input != nullptr && input->producer;
    operation.inputs.push_back({computed ? input->producer->order() : 0, computed ? nullptr : input});
  }
  for (const Node::Saved& saved : node.saved_arrays())
    operation.saved.push_back({shown_name(node.op(), saved.name), saved.array.shape(),
                               record_ == Record::arrays ? saved.array : Array()});
  operation.attributes.assign(node.attributes().begin(), node.attributes().end());
  if (record_ == Record::arrays) operation.y = y;
  operations_.push_back(std::move(operation));
}

void RecordedGraph::differentiating(const Node& node, const Array& dy) {
  const auto found = std::lower_bound(
      operations_.begin(), operations_.end(), node.order(),
      [](const RecordedOperation& operation, std::uint64_t order) { return operation.order < order; });
  if (found == operations_.end() || found->order != node.order()) return;
  found->gradient_norm = norm_of(dy);
  if (record_ == Record::shapes) return;
  found->dy = dy;
  found->d_input = input_gradients(node, dy);
}

const RecordedOperation& RecordedGraph::at(std::size_t i, std::string_view op) const {
  if (i >= operations_.size() || operations_[i].op != op)
    throw GraphError("explain", "operation " + std::to_string(i) + " of the graph must be " +
                                    std::string(op) + ", got " +
                                    (i < operations_.size() ? operations_[i].op : "none"));
  return operations_[i];
}

RecordedGraph record_graph(const std::function<void()>& pass) {
  RecordedGraph graph;
  const GraphObserverGuard guard(graph);
  pass();
  return graph;
}

void RecordedModules::input(const nn::Module& module, const Tensor& x) {
  if (wanted_(module)) inputs_[&module] = x.array();
}

void RecordedModules::output(const nn::Module& module, const Tensor& y) {
  if (!wanted_(module)) return;
  calls_.push_back({&module, inputs_[&module], y.array()});
  inputs_.erase(&module);
}

LayerNormGraph::LayerNormGraph(const RecordedGraph& graph)
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
  const RecordedGraph graph = record_graph([&] {
    layer_norm_composed(Tensor::constant(x.to(DType::float64)).requires_grad(),
                        Tensor::ones(features, DType::float64), Tensor::zeros(features, DType::float64), eps);
  });
  const LayerNormGraph lines(graph);
  return {lines.mean.y, lines.variance.y, lines.deviation.y, lines.normalized.y};
}

}  // namespace handgrad::view
