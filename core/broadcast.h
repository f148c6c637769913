// NumPy's broadcasting, forward and back: shapes are aligned at the end, sizes must be equal or 1, and an
// operand of size 1 is repeated; the gradient of a repeated operand is the sum over its repetitions.
#pragma once

#include <cstdint>

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"

namespace handgrad {

/// The shape that the operands broadcast to; ShapeError naming `op` and every operand when they do not fit.
Shape broadcast_shape(const char* op, std::initializer_list<checks::Named> operands);

/// Writes to `into`, or adds, the sum of `gradient` over the dimensions along which an operand of that shape was
/// repeated. Accumulates in double, in an order that depends on the shapes only.
void sum_to_shape(const Array& gradient, GradSink::Target into);

/// The same for a matrix [rows, columns], the last dimension being the columns: sums over the rows, of as many columns
/// as `into` has elements, from `first` on.
void sum_rows(const Array& matrix, std::int64_t first, GradSink::Target into);

/// Adds `gradient`, which has the shape of the result, to that of input `i`.
void add_gradient(GradSink& sink, const Node& node, int i, const Array& gradient);

/// Computes the gradient of input `i` by fill(Array&, add) in the result's shape: in place when the input has that
/// shape, else in a separate array and summed.
template <class Fill>
void compute_gradient(GradSink& sink, const Node& node, int i, const Array& dy, const Fill& fill) {
  if (node.input(i)->shape == dy.shape()) {
    const GradSink::Target into = sink.into(i);
    fill(into.array, into.add);
    return;
  }
  Array whole(dy.shape(), dy.dtype());
  fill(whole, false);
  sum_to_shape(whole, sink.into(i));
}

}  // namespace handgrad
