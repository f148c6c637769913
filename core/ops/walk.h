// Walking a dense array together with others that move by their own steps: operands that are repeated (broadcasting),
// results that are summed into (reduction), views such as a transpose.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "handgrad/core/array.h"
#include "handgrad/core/parallel.h"

namespace handgrad {

/// The loops over a dense array, and how N operands move along. Neighboring dimensions along which every operand moves
/// alike are one loop, so [B, T, C] + [C] is two loops and equal shapes are one.
template <int N>
struct Walk {
  std::int64_t size[Shape::kMaxRank];     ///< innermost loop first
  std::int64_t step[N][Shape::kMaxRank];  ///< elements from one turn to the next; 0: the same element again
  int depth = 0;                          ///< loops in use; 0 for a single element

  /// The next dimension, from the last one to the first.
  void add_dimension(std::int64_t count, const std::int64_t (&steps)[N]) {
    if (count == 1) return;
    bool joins = depth > 0;
    for (int k = 0; k < N; ++k) joins = joins && steps[k] == step[k][depth - 1] * size[depth - 1];
    if (joins) {
      size[depth - 1] *= count;
      return;
    }
    size[depth] = count;
    for (int k = 0; k < N; ++k) step[k][depth] = steps[k];
    ++depth;
  }

  /// @{ Of the matrix that the two innermost loops walk.
  std::int64_t columns() const { return depth > 0 ? size[0] : 1; }
  std::int64_t rows() const { return depth > 1 ? size[1] : 1; }
  /// @}
  /// 1, or 0 when one element serves a whole row.
  std::int64_t column_step(int operand) const { return depth > 0 ? step[operand][0] : 0; }
  /// Elements of the operand from one row to the next.
  std::int64_t row_step(int operand) const { return depth > 1 ? step[operand][1] : 0; }

  /// The turns of the loops from number `first` outwards.
  std::int64_t turns(int first) const {
    std::int64_t count = 1;
    for (int d = first; d < depth; ++d) count *= size[d];
    return count;
  }
  /// Where each operand is at turn `turn` of those loops.
  void offsets_at(std::int64_t turn, int first, std::int64_t (&offsets)[N]) const {
    for (int k = 0; k < N; ++k) offsets[k] = 0;
    for (int d = first; d < depth; ++d) {
      for (int k = 0; k < N; ++k) offsets[k] += turn % size[d] * step[k][d];
      turn /= size[d];
    }
  }

  /// Calls body(position, offsets, rows, columns) for matrices that together are the rows begin .. end - 1, in order:
  /// `position` is where the matrix begins in the dense array, offsets[k] where it begins in operand k.
  template <class Body>
  void matrices(std::int64_t begin, std::int64_t end, const Body& body) const {
    while (begin < end) {
      std::int64_t offsets[N];
      offsets_at(begin, 1, offsets);
      const std::int64_t count = std::min(end - begin, rows() - begin % rows());
      body(begin * columns(), offsets, count, columns());
      begin += count;
    }
  }
};

/// Each of `operands` must broadcast to `out`.
template <int N>
Walk<N> walk_over(const Shape& out, const Shape* const (&operands)[N]) {
  Walk<N> walk;
  std::int64_t passed[N];  // elements of the operand in the dimensions so far
  std::fill_n(passed, N, 1);
  for (int back = 1; back <= out.rank(); ++back) {
    std::int64_t step[N];
    for (int k = 0; k < N; ++k) {
      const Shape& shape = *operands[k];
      const std::int64_t own = back <= shape.rank() ? shape.at(-back) : 1;
      step[k] = own == 1 ? 0 : passed[k];
      passed[k] *= own;
    }
    walk.add_dimension(out.at(-back), step);
  }
  return walk;
}

/// Calls body(position, offsets, rows, columns) for matrices that together are the whole array, in parallel. `grain`:
/// elements of a chunk.
template <int N, class Body>
void for_each_matrix(const Walk<N>& walk, std::int64_t grain, const Body& body) {
  const std::int64_t columns = walk.columns(), all_rows = walk.turns(1);
  if (columns == 0 || all_rows == 0) return;
  if (all_rows == 1) {
    parallel_ranges(columns, grain, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t offsets[N];
      for (int k = 0; k < N; ++k) offsets[k] = begin * walk.column_step(k);
      body(begin, offsets, std::int64_t{1}, end - begin);
    });
    return;
  }
  parallel_ranges(all_rows, std::max<std::int64_t>(1, grain / columns),
                  [&](std::int64_t begin, std::int64_t end) { walk.matrices(begin, end, body); });
}

/// The same row by row: body(position, offsets, columns).
template <int N, class Body>
void for_each_row(const Walk<N>& walk, std::int64_t grain, const Body& body) {
  for_each_matrix(walk, grain, [&](std::int64_t at, auto& offsets, std::int64_t rows, std::int64_t columns) {
    for (std::int64_t i = 0; i < rows; ++i, at += columns) {
      body(at, offsets, columns);
      for (int k = 0; k < N; ++k) offsets[k] += walk.row_step(k);
    }
  });
}

/// Calls body(position, a, b, ...) for every element of a result of this shape, with the operands' elements there.
template <class T, class Body, class... Arrays>
void for_each_element(const Shape& shape, std::int64_t grain, const Body& body, const Arrays&... operands) {
  const auto walk = walk_over<sizeof...(operands)>(shape, {&operands.shape()...});
  const T* const first[] = {operands.template data<T>()...};
  for_each_row(walk, grain, [&](std::int64_t at, const auto& offset, std::int64_t columns) {
    [&]<int... k>(std::integer_sequence<int, k...>) {
      const T* const row[] = {first[k] + offset[k]...};
      const std::int64_t step[] = {walk.column_step(k)...};
      for (std::int64_t j = 0; j < columns; ++j) body(at + j, row[k][j * step[k]]...);
    }
    (std::make_integer_sequence<int, sizeof...(operands)>());
  });
}

/// Whether `a` precedes `b` in descending order, in which NaN is the largest number.
template <class T>
bool precedes(T a, T b) {
  return a > b || (a != a && b == b);
}

/// The walk of a reduction through its operand, cut for any number of threads by the shape only.
class ReduceWalk {
 public:
  /// `result` has the operand's rank, with size 1 in the dimensions that are reduced.
  ReduceWalk(const Shape& operand, const Shape& result);

  /// Numbers in the result, and in the operand for each of them.
  std::int64_t results() const { return results_; }
  std::int64_t reduced() const { return reduced_; }

  /// Whether a row gives one result; else it gives one result for each of its elements.
  bool row_is_reduced() const { return walk_.column_step(0) == 0; }
  /// How many sets of partial results the walk fills, to be added up in order.
  std::int64_t partials() const { return cut_ == Cut::into_partials ? parts_ : 1; }

  /// A part of the operand: `rows` rows of `columns` numbers from position x on, `row_step` apart. Where rows are
  /// reduced, each gives one result, from position y on; else each column does.
  struct Block {
    std::int64_t partial;
    std::int64_t x, rows, columns, row_step;
    std::int64_t y;
  };

  /// Calls body(block) for blocks that together are the operand. Those with the same results are visited in order,
  /// others on any thread.
  template <class Body>
  void run(const Body& body) const {
    if (elements_ == 0) return;
    parallel_for(parts_, [&](std::int64_t part) {
      run_part(part, cut_size() * part / parts_, cut_size() * (part + 1) / parts_, body);
    });
  }

 private:
  /// How work is cut for several threads: along the first loop or the columns, or, where the first loop is reduced
  /// and there are few results, into parts with partial results.
  enum class Cut { first_loop, columns, into_partials };

  std::int64_t cut_size() const {
    return walk_.depth < 2 || cut_ == Cut::columns ? walk_.columns() : walk_.size[walk_.depth - 1];
  }

  template <class Body>
  void run_part(std::int64_t part, std::int64_t begin, std::int64_t end, const Body& body) const {
    const std::int64_t partial = cut_ == Cut::into_partials ? part : 0;
    const std::int64_t columns = walk_.columns();
    if (walk_.depth < 2)
      return body(Block{partial, begin, 1, end - begin, end - begin, begin * walk_.column_step(0)});
    if (cut_ == Cut::columns) return body(Block{partial, begin, walk_.rows(), end - begin, columns, begin});
    const std::int64_t rows_in_turn = walk_.turns(1) / cut_size();
    walk_.matrices(begin * rows_in_turn, end * rows_in_turn,
                   [&](std::int64_t x, const auto& y, std::int64_t rows, std::int64_t) {
                     body(Block{partial, x, rows, columns, columns, y[0]});
                   });
  }

  Walk<1> walk_;
  std::int64_t elements_, results_, reduced_;
  std::int64_t parts_ = 1;
  Cut cut_ = Cut::first_loop;
};

/// to[i0, i1, ...], dense and of shape `shape`, = from[i0 * steps[0] + i1 * steps[1] + ...]. A step of 0
/// repeats. Rows that are contiguous are copied at once, and a transpose goes through small squares, so that
/// memory is read and written in whole cache lines. T is float, double or int32_t.
template <class T>
void copy_view(T* to, const T* from, const Shape& shape, const Shape& steps);

/// The steps of a dense array: the last dimension's is 1.
Shape dense_steps(const Shape& shape);

}  // namespace handgrad
