// Checks that operations share. Each takes the name of the operation that the user called, so that a message names
// it and not a helper. A check that passes costs a comparison.
#pragma once

#include <string>

#include "handgrad/core/error.h"
#include "handgrad/core/tensor.h"

namespace handgrad::checks {

/// An operand under the name that the documentation gives it.
struct Named {
  const char* name;      ///< a string literal
  const Tensor& tensor;  ///< must outlive the call
};

/// The DTypeError of operands that have no common type, with the type of each.
[[noreturn]] void throw_types(const char* op, std::initializer_list<Named> operands);

/// The element type that all operands share; DTypeError when they differ, one is undefined, or it is not a float type.
inline DType common_type(const char* op, std::initializer_list<Named> operands) {
  const DType type = operands.begin()->tensor.dtype();
  bool ok = type != DType::int32;
  for (const Named& operand : operands) ok = ok && operand.tensor.defined() && operand.tensor.dtype() == type;
  if (!ok) [[unlikely]]
    throw_types(op, operands);
  return type;
}

/// `dim` counted from 0; ShapeError unless -rank <= dim < rank.
inline int dimension(const char* op, int dim, const Tensor& x) {
  if (dim < -x.rank() || dim >= x.rank()) [[unlikely]]
    throw_dim(op, dim, {"x", x.shape()}, x.rank());
  return dim < 0 ? dim + x.rank() : dim;
}

/// The operands with their shapes, for an error message.
std::vector<Operand> shapes(std::initializer_list<Named> operands);

/// @{ The errors of the checks below. throw_value writes the shortest digits that read back to the number.
[[noreturn]] void throw_shape(const char* op, const std::string& rule, std::initializer_list<Named> operands);
[[noreturn]] void throw_vector(const char* op, const Named& operand, std::int64_t size, const char* reason,
                               std::initializer_list<Named> operands);
[[noreturn]] void throw_value(const char* op, const char* rule, double number, std::vector<Operand> operands);
/// @}

/// ShapeError unless `operand` is a vector of `size` numbers: "scale must have shape [6], the last dimension of x, got
/// [8]".
inline void vector(const char* op, const Named& operand, std::int64_t size, const char* reason,
                   std::initializer_list<Named> operands) {
  if (operand.tensor.rank() != 1 || operand.tensor.shape()[0] != size) [[unlikely]]
    throw_vector(op, operand, size, reason, operands);
}

/// ValueError unless `holds`: "eps must be at least 0, got -1".
inline void value(const char* op, bool holds, const char* rule, double number,
                  std::initializer_list<Named> operands) {
  if (!holds) [[unlikely]]
    throw_value(op, rule, number, shapes(operands));
}

}  // namespace handgrad::checks
