// The graph of one forward and backward pass, as the engine recorded it, drawn: a box for each operation and parameter,
// in the modules that they belong to. The text is for Graphviz's dot.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "handgrad/core/autograd.h"
#include "handgrad/nn/module.h"

namespace handgrad::train {

/// Notes the form of a pass while a GraphObserverGuard lets it look: names, shapes and norms, no numbers.
class GraphForm final : public GraphObserver {
 public:
  /// One operation.
  struct Operation {
    std::string op;           ///< as the engine knows it: "layer_norm"
    std::string module;       ///< path of the module that was running; empty outside of modules
    std::uint64_t order = 0;  ///< creation number
    Shape shape;              ///< of its result
    std::vector<std::pair<std::string, Shape>> saved;  ///< what it keeps for its backward
    std::vector<const GradSlot*> leaves;               ///< inputs that no operation made
    std::vector<std::uint64_t> sources;  ///< creation numbers of the operations that made the others
    double gradient_norm = -1;           ///< of d loss / d result; -1: no backward came here
  };

  /// @{ The engine calls these.
  void recorded(const Node& node, const Array& y) override;
  void differentiating(const Node& node, const Array& dy) override;
  /// @}

  const std::vector<Operation>& operations() const {
    return operations_;
  }  ///< in the order of their creation

 private:
  std::vector<Operation> operations_;
};

/// A graph as text for dot.
struct GraphDrawing {
  std::string dot;  ///< "digraph ..."
  std::optional<std::int64_t>
      depth;               ///< modules deeper than this are one box each; none: every operation is drawn
  std::size_t boxes = 0;   ///< operations, parameters and closed modules that are drawn
  std::size_t closed = 0;  ///< modules that are one box each
};

/// Draws `form` with the parameters of the model that made it, whose gradients are still there. `depth`: how many modules
/// deep every operation is drawn, 0: only those outside of modules; what lies deeper is one box for each module, with the
/// count of its operations and the norm of its result's gradient. Without `depth` everything, or, of more than 150
/// operations, as deep as leaves no more than 150 boxes of operations and modules.
GraphDrawing draw(const GraphForm& form, const std::vector<nn::NamedParameter>& parameters,
                  const std::string& title, std::optional<std::int64_t> depth);

/// Writes the text into `path`, or, when that ends in .svg, the picture that Graphviz's program dot makes of it. Error
/// when it cannot be written, or when there is no such program.
void write_graph(const GraphDrawing& drawing, const std::filesystem::path& path);

}  // namespace handgrad::train
