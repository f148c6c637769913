// Trace: every number of one forward and backward pass, by name, to compare with another implementation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "handgrad/data/dataset.h"
#include "handgrad/io/safetensors.h"
#include "handgrad/models/model.h"

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

}  // namespace handgrad::view
