#include "handgrad/core/broadcast.h"

#include <string>

#include "handgrad/core/error.h"
#include "handgrad/core/kernels/table.h"
#include "handgrad/core/ops/row_sums.h"

namespace handgrad {
namespace {

[[noreturn]] void refuse_shapes(const char* op, std::initializer_list<checks::Named> operands) {
  std::string got;
  for (const checks::Named& operand : operands) {
    if (!got.empty()) got += &operand + 1 == operands.end() ? " and " : ", ";
    got += operand.tensor.shape().text();
  }
  throw ShapeError(op, "shapes must broadcast (aligned at the end, sizes equal or 1), got " + got,
                   checks::shapes(operands));
}

template <class T>
void deliver(const double* totals, Array& array, bool add) {
  T* to = array.mutable_data<T>();
  for (std::int64_t i = 0; i < array.numel(); ++i)
    to[i] = static_cast<T>((add ? static_cast<double>(to[i]) : 0.0) + totals[i]);
}

constexpr double kElement = 0.3;  // nanoseconds

template <class T>
void sum_columns(const T* x, std::int64_t rows, std::int64_t stride, GradSink::Target into) {
  const std::int64_t columns = into.array.numel();
  if (columns == 0) return;
  const RowParts parts(rows, kElement * static_cast<double>(columns));
  const RowSums sums(parts, columns, true);
  parallel_ranges(rows, parts.rows_per_part, [&](std::int64_t begin, std::int64_t end) {
    kernels::table<T>().reduce.add_columns(sums.part(begin / parts.rows_per_part), x + begin * stride,
                                           end - begin, columns, stride);
  });
  sums.add_up<T>(into);
}

template <class T>
void sum_any(const T* x, const Loops<1>& loops, GradSink::Target into) {
  const std::int64_t count = into.array.numel();
  const Scratch scratch(static_cast<std::size_t>(count) * sizeof(double));
  auto* totals = scratch.as<double>();
  std::fill_n(totals, count, 0.0);
  const auto& kernel = kernels::table<T>().reduce;
  const bool along_rows = loops.column_step(0) == 0;
  constexpr std::int64_t kOneChunk = std::int64_t{1} << 62;  // matrices may share totals: one after another
  for_each_matrix(loops, kOneChunk,
                  [&](std::int64_t at, const auto& offsets, std::int64_t rows, std::int64_t columns) {
                    for (std::int64_t i = 0; i < rows; ++i) {
                      double* own = totals + offsets[0] + i * loops.row_step(0);
                      if (along_rows) {
                        *own += kernel.sum(x + at + i * columns, columns);
                      } else {
                        kernel.add_columns(own, x + at + i * columns, 1, columns, columns);
                      }
                    }
                  });
  deliver<T>(totals, into.array, into.add);
}

}  // namespace

Shape broadcast_shape(const char* op, std::initializer_list<checks::Named> operands) {
  Shape shape = operands.begin()->tensor.shape();
  for (const checks::Named& operand : operands) {
    Shape wider;
    if (!broadcast_shapes(shape, operand.tensor.shape(), wider)) refuse_shapes(op, operands);
    shape = wider;
  }
  return shape;
}

void sum_repeated(const Array& gradient, GradSink::Target into) {
  const Loops<1> loops = loops_over<1>(gradient.shape(), {&into.array.shape()});
  dispatch(gradient.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = gradient.data<T>();
    if (loops.depth == 2 && loops.step[0][0] == 1 && loops.step[0][1] == 0 && loops.size[1] > 0)
      return sum_columns(x, loops.size[1], loops.size[0], into);
    sum_any(x, loops, into);
  });
}

void sum_rows(const Array& matrix, std::int64_t first, GradSink::Target into) {
  const std::int64_t columns = matrix.shape().last();
  const std::int64_t rows = columns == 0 ? 0 : matrix.numel() / columns;
  dispatch(matrix.dtype(), [&](auto zero) {
    using T = decltype(zero);
    sum_columns(matrix.data<T>() + first, rows, columns, into);
  });
}

void give(GradSink& sink, const Node& node, int i, const Array& gradient) {
  const Shape& shape = node.input(i)->shape;
  if (shape == gradient.shape()) return sink.move(i, gradient);
  if (shape.numel() == gradient.numel()) return sink.move(i, gradient.reshape(shape));
  sum_repeated(gradient, sink.into(i));
}

}  // namespace handgrad
