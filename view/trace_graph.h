// Draws the recorded graph of one forward and backward pass for Graphviz's dot: a box for each operation and parameter, in
// their modules.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/view/recorded.h"

namespace handgrad::view {

/// A graph as text for dot.
struct GraphDrawing {
  std::string dot;  ///< "digraph ..."
  std::optional<std::int64_t>
      depth;               ///< modules deeper than this are one box each; none: every operation is drawn
  std::size_t boxes = 0;   ///< operations, parameters and closed modules that are drawn
  std::size_t closed = 0;  ///< modules that are one box each
};

/// Draws `graph` with the parameters of the model that made it, whose gradients are still there. `depth`: how many modules
/// deep every operation is drawn, 0: only those outside of modules; what lies deeper is one box for each module, with the
/// count of its operations and the norm of its result's gradient. Without `depth` everything, or, of more than 150
/// operations, as deep as leaves no more than 150 boxes of operations and modules.
GraphDrawing draw(const RecordedGraph& graph, const std::vector<nn::NamedParameter>& parameters,
                  const std::string& title, std::optional<std::int64_t> depth);

/// Writes the text into `path`, or, when that ends in .svg, the picture drawn by Graphviz's dot. Error when it cannot be
/// written, or when dot is missing.
void write_graph(const GraphDrawing& drawing, const std::filesystem::path& path);

}  // namespace handgrad::view
