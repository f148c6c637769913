// Trace: every number of one forward and backward pass, by name, to compare with another implementation; or its graph, as
// Graphviz's dot draws it: a box for each operation and parameter, in their modules.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/data/dataset.h"
#include "handgrad/io/safetensors.h"
#include "handgrad/models/model.h"
#include "handgrad/view/recorded.h"

namespace handgrad::view {

/// One forward and backward of `model` on `batch`, without dropout, in the model's element type:
///
///     loss                    [1]        mean cross-entropy
///     logits                  [B, T, V]
///     param.NAME, grad.NAME              every parameter; those without a gradient have no grad.NAME
///     act.PATH                           what each module returned; a module that is called twice: PATH, PATH#2
///     act.PATH.mean, .variance, .deviation [B, T, 1], .normalized [B, T, C]
///                                        of each LayerNorm; the deviation is the root with eps under it
///
/// Clears the gradients that the model had.
std::vector<io::NamedArray> trace(models::Model& model, const data::Batch& batch);

/// How two arrays of the same name differ.
struct TraceDifference {
  std::string name;     ///< "grad.final_norm.scale"
  double absolute = 0;  ///< largest of all elements
  /// The same, divided by the largest number of that tensor in A, or by a thousandth of the largest in its group
  /// ("grad", "act", ...) if that is more: some gradients are rounding errors.
  double relative = 0;
  std::int64_t worst = 0;  ///< flat position of the element
  /// @{ The numbers there.
  double a = 0, b = 0;
  /// @}
};

/// How two files of arrays differ.
struct TraceComparison {
  std::vector<TraceDifference> differences;  ///< of every common name, in A's order
  /// @{ Names that the other one lacks.
  std::vector<std::string> only_a, only_b;
  /// @}
  std::vector<std::string> other_shape;  ///< "act.x: [1, 4] and [4]"
  double worst = 0;                      ///< largest relative difference

  /// Whether both hold the same names and shapes, and nothing differs by more than `tolerance`.
  bool equal(double tolerance) const;
};

/// Compares two safetensors files, of any element types, by name. Errors of reading them.
TraceComparison compare_traces(const std::filesystem::path& a, const std::filesystem::path& b);

/// A table: each tensor with its worst element, marked when above `tolerance`, then what only one file has.
std::string text(const TraceComparison& comparison, double tolerance);

// ---- The graph

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
