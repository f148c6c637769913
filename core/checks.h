// Checks that operations share. Each takes the name of the operation that the user called, so that a message names
// that and no helper; the good case costs a comparison.
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
[[noreturn]] void refuse_types(const char* op, std::initializer_list<Named> operands);
/// The ShapeError of a dimension that x has not.
[[noreturn]] void refuse_dim(const char* op, int dim, const Tensor& x);

/// The element type that all operands share; DTypeError when they differ, one is undefined, or it is not a float type.
inline DType common_type(const char* op, std::initializer_list<Named> operands) {
  const DType type = operands.begin()->tensor.dtype();
  bool ok = type != DType::int32;
  for (const Named& operand : operands) ok = ok && operand.tensor.defined() && operand.tensor.dtype() == type;
  if (!ok) [[unlikely]]
    refuse_types(op, operands);
  return type;
}

/// `dim` counted from 0; ShapeError unless -rank <= dim < rank.
inline int dimension(const char* op, int dim, const Tensor& x) {
  if (dim < -x.rank() || dim >= x.rank()) [[unlikely]]
    refuse_dim(op, dim, x);
  return dim < 0 ? dim + x.rank() : dim;
}

/// The operands with their shapes, for an error message.
std::vector<Operand> shapes(std::initializer_list<Named> operands);

}  // namespace handgrad::checks
