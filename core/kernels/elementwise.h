// Kernels that take each element by itself. A family of kernels is a struct of function pointers; table.h
// holds one of each for the instruction set in use.
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

/// y [rows, columns], dense, = a op b, or += when `add` is set. y may be the same memory as an operand of its
/// shape.
template <class T>
using Binary = void (*)(T* y, Operand<T> a, Operand<T> b, int64_t rows, int64_t columns, bool add);

template <class T>
struct Elementwise {
  Binary<T> add;
  Binary<T> sub;
  Binary<T> mul;
  Binary<T> div;
};

}  // namespace handgrad::kernels
