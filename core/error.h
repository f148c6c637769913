// What the library throws. It never prints, aborts or exits.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "handgrad/core/dtype.h"
#include "handgrad/core/shape.h"

namespace handgrad {

/// An operand as an error message shows it: its name and its shape, or another short text ("float64").
struct Operand {
  /// @{ The name with a shape, another short text, or an element type.
  Operand(std::string operand, const Shape& shape) : name(std::move(operand)), text(shape.text()) {}
  Operand(std::string operand, std::string what) : name(std::move(operand)), text(std::move(what)) {}
  Operand(std::string operand, DType dtype) : name(std::move(operand)), text(name_of(dtype)) {}
  /// @}

  std::string name;  ///< as the documentation of the operation calls it
  std::string text;  ///< "[8]", "float64"
};

/// Base of all errors of the library. The text reads
///
///     layer_norm: scale must have shape [6], the last dimension of x, got [8]
///       x [2, 4, 6]   scale [8]   shift [8]
///       try: ...
///       in: trf_blocks.3.norm1
///
/// with the last two lines only where they apply. The parts are fields too. A word in backquotes, `step`, is what the
/// caller chose by this name; the program shows it as the option --step, and `handgrad` as the name it was called by.
class Error : public std::runtime_error {
 public:
  /// `op`: what the user called; `message`: the rule that was broken and the value found instead; `operands`: all
  /// of them; `advice`: what to do, if known. The module path is the calling thread's current scope.
  Error(std::string op, std::string message, std::vector<Operand> operands = {}, std::string advice = {});

  const std::string& op() const { return op_; }            ///< what the user called
  const std::string& message() const { return message_; }  ///< the broken rule, and what was found
  /// All operands, not only the wrong one.
  const std::vector<Operand>& operands() const { return operands_; }
  const std::string& advice() const { return advice_; }  ///< what to do; may be empty
  /// Where it happened: "trf_blocks.3.norm1"; empty outside of modules.
  const std::string& module_path() const { return module_path_; }

 private:
  std::string op_, message_, advice_, module_path_;
  std::vector<Operand> operands_;
};

/// Shapes, ranks or dimensions that do not fit.
struct ShapeError : Error {
  using Error::Error;
};
/// The ShapeError of a dimension that an operand of this rank does not have.
[[noreturn]] void throw_dim(const char* op, int dim, Operand operand, int rank);
/// Operands of different or unsuitable element types.
struct DTypeError : Error {
  using Error::Error;
};
/// A token id, a target or an index outside of its range.
struct IndexError : Error {
  using Error::Error;
};
/// A number outside of its range: a negative eps, a dropout rate of 1.
struct ValueError : Error {
  using Error::Error;
};
/// An array that does not fit into the free memory.
struct MemoryError : Error {
  using Error::Error;
};
/// Misuse of the recorded graph: a second backward, a saved array that was changed, a missing gradient.
struct GraphError : Error {
  using Error::Error;
};

}  // namespace handgrad
