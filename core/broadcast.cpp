#include "handgrad/core/broadcast.h"

#include <string>

#include "handgrad/core/error.h"
#include "handgrad/core/kernels/reduce.h"
#include "handgrad/core/ops/rows.h"
#include "handgrad/core/ops/walk.h"

namespace handgrad {
namespace {

[[noreturn]] void throw_shapes(const char* op, std::initializer_list<checks::Named> operands) {
  std::string got;
  for (const checks::Named& operand : operands) {
    if (!got.empty()) got += &operand + 1 == operands.end() ? " and " : ", ";
    got += operand.tensor.shape().text();
  }
  checks::throw_shape(op, "shapes must broadcast (aligned at the end, sizes equal or 1), got " + got,
                      operands);
}

constexpr double kElement = 0.3;  // nanoseconds

template <class T>
void sum_columns(const T* x, std::int64_t rows, std::int64_t stride, GradSink::Target into) {
  const std::int64_t columns = into.array.numel();
  if (columns == 0) return;
  const RowParts parts(rows, kElement * static_cast<double>(columns));
  const RowSums sums(parts, columns, true);
  const auto add_columns = HANDGRAD_ACTIVE(add_columns<T>);
  parts.each([&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    add_columns(sums.part(part), x + begin * stride, end - begin, columns, stride);
  });
  sums.add_up<T>(into);
}

template <class T>
void sum_any(const T* x, const Walk<1>& walk, GradSink::Target into) {
  const std::int64_t count = into.array.numel();
  const Scratch scratch(static_cast<std::size_t>(count) * sizeof(double));
  auto* totals = scratch.as<double>();
  std::fill_n(totals, count, 0.0);
  const auto sum_of = HANDGRAD_ACTIVE(sum<T>);
  const auto add_columns = HANDGRAD_ACTIVE(add_columns<T>);
  const bool along_rows = walk.column_step(0) == 0;
  constexpr std::int64_t kOneChunk = std::int64_t{1} << 62;  // rows may share totals: one after another
  for_each_row(walk, kOneChunk, [&](std::int64_t at, const auto& to, std::int64_t columns) {
    if (along_rows) {
      totals[to[0]] += sum_of(x + at, columns);
    } else {
      add_columns(totals + to[0], x + at, 1, columns, columns);
    }
  });
  T* sums = into.array.mutable_data<T>();
  for (std::int64_t i = 0; i < count; ++i)
    sums[i] = static_cast<T>((into.add ? static_cast<double>(sums[i]) : 0.0) + totals[i]);
}

}  // namespace

Shape broadcast_shape(const char* op, std::initializer_list<checks::Named> operands) {
  Shape shape = operands.begin()->tensor.shape();
  for (const checks::Named& operand : operands) {
    Shape wider;
    if (!broadcast_shapes(shape, operand.tensor.shape(), wider)) throw_shapes(op, operands);
    shape = wider;
  }
  return shape;
}

void sum_to_shape(const Array& gradient, GradSink::Target into) {
  const Walk<1> walk = walk_over<1>(gradient.shape(), {&into.array.shape()});
  dispatch(gradient.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = gradient.data<T>();
    if (walk.depth == 2 && walk.step[0][0] == 1 && walk.step[0][1] == 0 && walk.size[1] > 0)
      return sum_columns(x, walk.size[1], walk.size[0], into);
    sum_any(x, walk, into);
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

void add_gradient(GradSink& sink, const Node& node, int i, const Array& gradient) {
  const Shape& shape = node.input(i)->shape;
  if (shape == gradient.shape()) return sink.move(i, gradient);
  if (shape.numel() == gradient.numel()) return sink.move(i, gradient.reshape(shape));
  sum_to_shape(gradient, sink.into(i));
}

}  // namespace handgrad
