// RecordedGraph: what the engine recorded of a pass, forward and backward, to be read line by line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/core/autograd.h"

namespace handgrad::train::explain {

/// One operation: what it computed, and what its backward was given and gave. Arrays share the engine's numbers.
struct RecordedOperation {
  std::string op;           ///< as the engine knows it: "sqrt"
  std::string module;       ///< path of the module that was running; empty outside of modules
  std::uint64_t order = 0;  ///< creation number
  Array y;                  ///< its result
  /// For each input the creation number of the operation that made it; 0 for a leaf, or for what wants no gradient.
  std::vector<std::uint64_t> inputs;
  std::vector<std::pair<std::string, Array>> saved;  ///< by the names that readers know
  std::vector<Attribute> attributes;                 ///< such as eps
  Array dy;  ///< d loss / d y, complete; undefined when no backward came here
  std::vector<Array>
      given;  ///< what its backward gave to each input, by itself; undefined where none was wanted
};

/// Notes every operation while a GraphObserverGuard lets it look.
class RecordedGraph final : public GraphObserver {
 public:
  RecordedGraph() = default;
  /// Only what runs in the module `path` and below it.
  explicit RecordedGraph(std::string path) : path_(std::move(path)) {}

  /// @{ The engine calls these.
  void recorded(const Node& node, const Array& y) override;
  void differentiating(const Node& node, const Array& dy) override;
  /// @}

  const std::vector<RecordedOperation>& operations() const {
    return operations_;
  }  ///< in the order of their creation
  /// Operation number `i`, counted from 0. GraphError unless it is there and named `op`: a sheet reads a graph whose form it
  /// knows.
  const RecordedOperation& at(std::size_t i, std::string_view op) const;

 private:
  bool wanted(const Node& node) const;

  std::string path_;
  std::vector<RecordedOperation> operations_;
};

}  // namespace handgrad::train::explain
