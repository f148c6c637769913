#include "handgrad/core/broadcast.h"

#include <string>

#include "handgrad/core/error.h"

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

// Adds the rows of a matrix to `totals`, element by element.
template <class T>
void add_rows(double* totals, const T* x, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) totals[j] += static_cast<double>(x[i * columns + j]);
}

template <class T>
double row_sum(const T* x, std::int64_t n) {
  double lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int lane = 0; lane < 8; ++lane) lanes[lane] += static_cast<double>(x[i + lane]);
  for (int lane = 0; i < n; ++i, ++lane) lanes[lane] += static_cast<double>(x[i]);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <class T>
void deliver(const double* totals, Array& array, bool add) {
  T* to = array.mutable_data<T>();
  for (std::int64_t i = 0; i < array.numel(); ++i)
    to[i] = static_cast<T>((add ? static_cast<double>(to[i]) : 0.0) + totals[i]);
}

constexpr std::int64_t kGrain = grain_for(0.3);

// The common case, [rows, columns] to [columns]: up to 16 partial sums, one for each range of rows.
template <class T>
void sum_columns(const T* x, std::int64_t rows, std::int64_t columns, GradSink::Target into) {
  const std::int64_t parts =
      std::clamp<std::int64_t>(rows * columns / kGrain, 1, std::min<std::int64_t>(16, rows));
  const Scratch scratch(static_cast<std::size_t>(parts * columns) * sizeof(double));
  auto* totals = scratch.as<double>();
  parallel_for(parts, [&](std::int64_t part) {
    double* own = totals + part * columns;
    std::fill_n(own, columns, 0.0);
    const std::int64_t begin = rows * part / parts;
    add_rows(own, x + begin * columns, rows * (part + 1) / parts - begin, columns);
  });
  for (std::int64_t part = 1; part < parts; ++part) add_rows(totals, totals + part * columns, 1, columns);
  deliver<T>(totals, into.array, into.add);
}

template <class T>
void sum_any(const T* x, const Loops<1>& loops, GradSink::Target into) {
  const std::int64_t count = into.array.numel();
  const Scratch scratch(static_cast<std::size_t>(count) * sizeof(double));
  auto* totals = scratch.as<double>();
  std::fill_n(totals, count, 0.0);
  const bool along_rows = loops.column_step(0) == 0;
  constexpr std::int64_t kOneChunk = std::int64_t{1} << 62;  // matrices may share totals: one after another
  for_each_matrix(loops, kOneChunk,
                  [&](std::int64_t at, const auto& offsets, std::int64_t rows, std::int64_t columns) {
                    for (std::int64_t i = 0; i < rows; ++i) {
                      double* own = totals + offsets[0] + i * loops.row_step(0);
                      if (along_rows) {
                        *own += row_sum(x + at + i * columns, columns);
                      } else {
                        add_rows(own, x + at + i * columns, 1, columns);
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

void give(GradSink& sink, const Node& node, int i, const Array& gradient) {
  const Shape& shape = node.input(i)->shape;
  if (shape == gradient.shape()) return sink.move(i, gradient);
  if (shape.numel() == gradient.numel()) return sink.move(i, gradient.reshape(shape));
  sum_repeated(gradient, sink.into(i));
}

}  // namespace handgrad
