// Kernels of two operands that take each element by itself; defined in core/ops/arithmetic.cpp.
#pragma once

#include "handgrad/core/kernels/targets.h"

namespace handgrad::kernels {

/// chain_mul and chain_div are a * b and a / b for gradients: a is the upstream gradient, and where it is 0 the result is
/// 0, even if b is infinite, NaN or (for the quotient) 0.
enum class Binary { add, sub, mul, div, chain_mul, chain_div };

/// A matrix operand under broadcasting: element (i, j) is data[i * row + j * column].
/// row is 0 when one row serves all; column is 1, or 0 when one element serves a whole row.
template <class T>
struct MatrixOperand {
  const T* data;
  int64_t row;
  int64_t column;
};

/// y [rows, columns], dense, = a op b, or += when `add` is set. y may be the same memory as an operand of its shape.
/// Operands are passed by reference: a copy on the stack is read in wider pieces than it was just written in, and the
/// wait for that takes longer than adding four numbers.
template <class T>
using BinaryFunction = void (*)(T* y, const MatrixOperand<T>& a, const MatrixOperand<T>& b, int64_t rows,
                                int64_t columns, bool add);

/// In the order of Binary.
template <class T>
struct Binaries {
  BinaryFunction<T> of[6];
};

}  // namespace handgrad::kernels

HANDGRAD_EACH_TARGET(extern const Binaries<float> float_binaries;
                     extern const Binaries<double> double_binaries;)

#ifndef HANDGRAD_TARGET
namespace handgrad::kernels {
template <class T>
BinaryFunction<T> binary_function(Binary op) {
  if constexpr (sizeof(T) == sizeof(float)) return HANDGRAD_ACTIVE(float_binaries)->of[static_cast<int>(op)];
  if constexpr (sizeof(T) == sizeof(double))
    return HANDGRAD_ACTIVE(double_binaries)->of[static_cast<int>(op)];
}
}  // namespace handgrad::kernels
#endif
