// Kernels of two operands that take each element by itself. A family of kernels is a struct of function pointers;
// table.h holds one of each for the instruction set in use.
#pragma once

#include <stdint.h>

namespace handgrad::kernels {

/// A matrix operand under broadcasting: element (i, j) is data[i * row + j * column].
/// row is 0 when one row serves all; column is 1, or 0 when one element serves a whole row.
template <class T>
struct Operand {
  const T* data;
  int64_t row;
  int64_t column;
};

/// y [rows, columns], dense, = a op b, or += when `add` is set. y may be the same memory as an operand of its shape.
/// Operands come by reference: a copy on the stack is read in wider pieces than it was just written in, and the wait for
/// that takes longer than adding four numbers.
template <class T>
using Binary = void (*)(T* y, const Operand<T>& a, const Operand<T>& b, int64_t rows, int64_t columns,
                        bool add);

template <class T>
struct Elementwise {
  Binary<T> add;
  Binary<T> sub;
  Binary<T> mul;
  Binary<T> div;
  /// a * b and a / b for gradients: a is the upstream gradient, and where it is 0 the result is 0, even if b is
  /// infinite, NaN or (for the quotient) 0.
  Binary<T> chain_mul;
  Binary<T> chain_div;
  /// y[i] += x[i], i < n
  void (*accumulate)(T* y, const T* x, int64_t n);
  /// y[i] += factor * x[i], i < n; a fused multiply-add, rounded once
  void (*axpy)(T* y, T factor, const T* x, int64_t n);
};

}  // namespace handgrad::kernels
