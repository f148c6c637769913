#include "handgrad/train/explain/graph.h"

#include <algorithm>

#include "handgrad/core/error.h"
#include "handgrad/core/input_gradients.h"

namespace handgrad::train::explain {
namespace {

/// What a reader calls an array that an operation saved: `rstd` is the engine's word.
std::string shown_name(std::string_view op, std::string_view saved) {
  if (saved == "rstd") return op == "layer_norm" ? "1 / deviation" : "1 / root";
  return std::string(saved);
}

}  // namespace

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
  operation.y = y;
  for (int i = 0; i < node.input_count(); ++i) {
    const GradSlot* input = node.input(i);
    operation.inputs.push_back(input != nullptr && input->producer ? input->producer->order() : 0);
  }
  for (const Node::Saved& saved : node.saved_arrays())
    operation.saved.emplace_back(shown_name(node.op(), saved.name), saved.array);
  operation.attributes.assign(node.attributes().begin(), node.attributes().end());
  operations_.push_back(std::move(operation));
}

void RecordedGraph::differentiating(const Node& node, const Array& dy) {
  if (!wanted(node)) return;
  const auto found = std::lower_bound(
      operations_.begin(), operations_.end(), node.order(),
      [](const RecordedOperation& operation, std::uint64_t order) { return operation.order < order; });
  if (found == operations_.end() || found->order != node.order()) return;  // it was recorded before the guard
  found->dy = dy;
  found->given = input_gradients(node, dy);
}

const RecordedOperation& RecordedGraph::at(std::size_t i, std::string_view op) const {
  if (i >= operations_.size() || operations_[i].op != op)
    throw GraphError("explain", "operation " + std::to_string(i) + " of the graph must be " +
                                    std::string(op) + ", got " +
                                    (i < operations_.size() ? operations_[i].op : "none"));
  return operations_[i];
}

}  // namespace handgrad::train::explain
