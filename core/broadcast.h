// NumPy's broadcasting, forward and back: shapes are aligned at the end, sizes must be equal or 1, and an
// operand of size 1 is repeated; the gradient of a repeated operand is the sum over its repetitions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/parallel.h"

namespace handgrad {

/// The shape that the operands broadcast to; ShapeError naming `op` and every operand when they do not fit.
Shape broadcast_shape(const char* op, std::initializer_list<checks::Named> operands);

/// How N operands are walked to make one dense result. Neighbouring dimensions along which every operand
/// moves alike are one loop, so [B, T, C] + [C] is two loops and equal shapes are one.
template <int N>
struct Loops {
  std::int64_t size[Shape::kMaxRank];  ///< innermost loop first
  std::int64_t
      step[N][Shape::kMaxRank];  ///< elements from one turn to the next; 0 where the operand is repeated
  int depth = 0;                 ///< loops in use; 0 for a single element

  /// @{ Of the matrix that the two innermost loops walk.
  std::int64_t columns() const { return depth > 0 ? size[0] : 1; }
  std::int64_t rows() const { return depth > 1 ? size[1] : 1; }
  /// @}
  /// 1, or 0 when one element serves a whole row.
  std::int64_t column_step(int operand) const { return depth > 0 ? step[operand][0] : 0; }
  /// Elements of the operand from one row to the next.
  std::int64_t row_step(int operand) const { return depth > 1 ? step[operand][1] : 0; }
};

/// Each of `operands` must broadcast to `out`.
template <int N>
Loops<N> loops_over(const Shape& out, const Shape* const (&operands)[N]) {
  Loops<N> loops;
  std::int64_t passed[N];  // elements of the operand in the dimensions seen so far
  std::fill_n(passed, N, 1);
  for (int back = 1; back <= out.rank(); ++back) {
    const std::int64_t size = out.at(-back);
    if (size == 1) continue;
    std::int64_t step[N];
    bool joins = loops.depth > 0;
    for (int k = 0; k < N; ++k) {
      const Shape& shape = *operands[k];
      const std::int64_t own = back <= shape.rank() ? shape.at(-back) : 1;
      step[k] = own == 1 ? 0 : passed[k];
      passed[k] *= own;
      joins = joins && step[k] == loops.step[k][loops.depth - 1] * loops.size[loops.depth - 1];
    }
    if (joins) {
      loops.size[loops.depth - 1] *= size;
      continue;
    }
    loops.size[loops.depth] = size;
    for (int k = 0; k < N; ++k) loops.step[k][loops.depth] = step[k];
    ++loops.depth;
  }
  return loops;
}

/// Calls body(position, offsets, rows, columns) for matrices that together are the whole result: `position`
/// is where the matrix begins in the result, offsets[k] where it begins in operand k. `grain`: elements of a
/// parallel chunk.
template <int N, class Body>
void for_each_matrix(const Loops<N>& loops, std::int64_t grain, const Body& body) {
  const std::int64_t columns = loops.columns();
  const std::int64_t rows = loops.rows();
  std::int64_t all_rows = rows;
  for (int d = 2; d < loops.depth; ++d) all_rows *= loops.size[d];
  if (columns == 0 || all_rows == 0) return;
  if (all_rows == 1) {
    parallel_ranges(columns, grain, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t offsets[N];
      for (int k = 0; k < N; ++k) offsets[k] = begin * loops.column_step(k);
      body(begin, offsets, std::int64_t{1}, end - begin);
    });
    return;
  }
  parallel_ranges(all_rows, std::max<std::int64_t>(1, grain / columns),
                  [&](std::int64_t begin, std::int64_t end) {
                    while (begin < end) {
                      std::int64_t offsets[N] = {};
                      std::int64_t rest = begin;
                      for (int d = 1; d < loops.depth; ++d) {
                        for (int k = 0; k < N; ++k) offsets[k] += rest % loops.size[d] * loops.step[k][d];
                        rest /= loops.size[d];
                      }
                      const std::int64_t count = std::min(end - begin, rows - begin % rows);
                      body(begin * columns, offsets, count, columns);
                      begin += count;
                    }
                  });
}

/// Writes to `into`, or adds, the sum of `gradient` over the dimensions along which an operand of that shape was
/// repeated. Accumulates in double, in an order that depends on the shapes only.
void sum_repeated(const Array& gradient, GradSink::Target into);

/// The same for a matrix [rows, columns], the last dimension being the columns: sums over the rows, of as many columns
/// as `into` has elements, from `first` on.
void sum_rows(const Array& matrix, std::int64_t first, GradSink::Target into);

/// Hands input `i` a gradient that has the shape of the result.
void give(GradSink& sink, const Node& node, int i, const Array& gradient);

/// Gives input `i` a gradient computed by fill(Array&, add) in the result's shape: in place when the input
/// has that shape, else beside it and summed.
template <class Fill>
void give_filled(GradSink& sink, const Node& node, int i, const Array& dy, const Fill& fill) {
  if (node.input(i)->shape == dy.shape()) {
    const GradSink::Target into = sink.into(i);
    fill(into.array, into.add);
    return;
  }
  Array whole(dy.shape(), dy.dtype());
  fill(whole, false);
  sum_repeated(whole, sink.into(i));
}

}  // namespace handgrad
