// What a forward and backward pass did, recorded while it ran: RecordedGraph by operation, RecordedModules by module.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/core/autograd.h"
#include "handgrad/nn/module.h"

namespace handgrad::view {

/// An input of a recorded operation. At most one of both is set; none for an input that needs no gradient.
struct RecordedInput {
  std::uint64_t order = 0;         ///< creation number of the operation that computed it
  const GradSlot* leaf = nullptr;  ///< of a tensor that no operation computed, such as a parameter
};

/// An array that an operation keeps for its backward.
struct RecordedSave {
  std::string name;  ///< as readers know it: "1 / deviation"
  Shape shape;       ///< of the array
  Array array;       ///< undefined when only shapes are recorded
};

/// One operation. Arrays share the engine's numbers.
struct RecordedOperation {
  std::string op;                     ///< as the engine knows it: "sqrt"
  std::string module;                 ///< path of the module that was running; empty outside of modules
  std::uint64_t order = 0;            ///< creation number
  std::vector<RecordedInput> inputs;  ///< in the operation's order
  std::vector<RecordedSave> saved;    ///< in the operation's order
  std::vector<Attribute> attributes;  ///< such as eps
  Shape shape;                        ///< of the result
  double gradient_norm = -1;          ///< of d loss / d result; -1: no gradient reached it

  // Undefined when only shapes are recorded.
  Array y;   ///< the result
  Array dy;  ///< d loss / d result, complete; undefined when no gradient reached it
  std::vector<Array>
      d_input;  ///< what its backward added to each input's gradient; undefined where none is needed
};

/// What a RecordedGraph keeps: a graph that is only drawn needs no arrays.
enum class Record { arrays, shapes };

/// Records every operation while a GraphObserverGuard is active.
class RecordedGraph final : public GraphObserver {
 public:
  /// `path`: records only what runs in this module and below it.
  explicit RecordedGraph(std::string path = "", Record record = Record::arrays)
      : path_(std::move(path)), record_(record) {}

  /// @{ Called by the engine.
  void recorded(const Node& node, const Array& y) override;
  void differentiating(const Node& node, const Array& dy) override;
  /// @}

  /// In the order of their creation.
  const std::vector<RecordedOperation>& operations() const { return operations_; }
  /// Operation number `i`, counted from 0. GraphError unless it exists and is named `op`: a sheet expects a graph of a
  /// known form.
  const RecordedOperation& at(std::size_t i, std::string_view op) const;

 private:
  bool wanted(const Node& node) const;

  std::string path_;
  Record record_;
  std::vector<RecordedOperation> operations_;
};

/// What `pass` records.
RecordedGraph record_graph(const std::function<void()>& pass);

/// One call of a module. The arrays share the engine's numbers.
struct RecordedCall {
  const nn::Module* module;  ///< lives as long as its model
  Array x;                   ///< undefined for token ids
  Array y;                   ///< its output
};

/// Records the calls of modules while an nn::ModuleObserverGuard is active.
class RecordedModules final : public nn::ModuleObserver {
 public:
  /// `wanted`: which modules to record.
  explicit RecordedModules(std::function<bool(const nn::Module&)> wanted) : wanted_(std::move(wanted)) {}

  /// @{ Called by modules.
  void input(const nn::Module& module, const Tensor& x) override;
  void output(const nn::Module& module, const Tensor& y) override;
  /// @}

  /// In the order in which they returned.
  const std::vector<RecordedCall>& calls() const { return calls_; }

 private:
  std::function<bool(const nn::Module&)> wanted_;
  std::map<const nn::Module*, Array> inputs_;  // of calls that have not returned
  std::vector<RecordedCall> calls_;
};

/// The root of the sum of squares.
double norm_of(const Array& array);

/// The operations of one layer_norm_composed, in the order in which it records them.
struct LayerNormGraph {
  /// GraphError when the graph has another form.
  explicit LayerNormGraph(const RecordedGraph& graph);

  /// @{ Named after their results.
  const RecordedOperation &mean, &centered, &squared, &variance, &under_root, &deviation, &normalized,
      &scaled, &output;
  /// @}
};

/// What a LayerNorm computes of each row before scale and shift.
struct LayerNormLines {
  /// @{ [..., 1]; the deviation has eps under its root.
  Array mean, variance, deviation;
  /// @}
  Array normalized;  ///< [..., C]
};

/// The lines for the rows of `x` [..., C], in float64 whatever its type, like the statistics of the fused layer_norm.
LayerNormLines layer_norm_lines(const Array& x, double eps);

}  // namespace handgrad::view
