#include "handgrad/core/ops/walk.h"

namespace handgrad {
namespace {

constexpr std::int64_t kElementsPerPart = 32768;  // of a reduction; about 20 us
constexpr std::int64_t kMostParts = 64;
constexpr std::int64_t kLeastColumns = 1024;      // in a part, so that it reads long stretches
constexpr std::int64_t kElementsPerPartial = 16;  // partial results stay small beside the operand

constexpr double kNanosecondsPerByte = 0.1;
constexpr std::int64_t kSquare = 16;  // of a transpose: 16 rows of one cache line each

template <class T>
void copy_row(T* to, const T* from, std::int64_t n, std::int64_t step) {
  if (step == 1) {
    std::copy_n(from, n, to);
  } else if (step == 0) {
    std::fill_n(to, n, *from);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  }
}

/// to[r * to_row + c] = from[c * from_column + r] for a rectangle.
template <class T>
void transpose(T* to, std::int64_t to_row, const T* from, std::int64_t from_column, std::int64_t rows,
               std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[r * to_row + c] = from[c * from_column + r];
}

/// Planes in which the columns of `to` and the loop `dense`, along which `from` is dense, change places.
template <class T>
void copy_planes(T* to, const T* from, const Walk<1>& view, int dense) {
  Walk<2> planes{};  // the other loops, through `to` and through `from`
  std::int64_t to_step = 1, to_row = 1;
  for (int d = 0; d < view.depth; ++d) {
    if (d == dense) to_row = to_step;
    if (d != dense && d != 0) planes.add_dimension(view.size[d], {to_step, view.step[0][d]});
    to_step *= view.size[d];
  }
  const std::int64_t columns = view.columns(), rows = view.size[dense], from_column = view.column_step(0);
  const std::int64_t strips = (rows + kSquare - 1) / kSquare;  // of 16 rows, in every plane
  const double strip_cost = static_cast<double>(columns * kSquare) * sizeof(T) * 2 * kNanosecondsPerByte;
  parallel_ranges(planes.turns(0) * strips, grain_for(strip_cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t r = i % strips * kSquare;
      std::int64_t plane[2];
      planes.offsets_at(i / strips, 0, plane);
      T* strip_to = to + plane[0] + r * to_row;
      const T* strip_from = from + plane[1] + r;
      for (std::int64_t c = 0; c < columns; c += kSquare)
        transpose(strip_to + c, to_row, strip_from + c * from_column, from_column,
                  std::min(kSquare, rows - r), std::min(kSquare, columns - c));
    }
  });
}

}  // namespace

ReduceWalk::ReduceWalk(const Shape& operand, const Shape& result)
    : walk_(walk_over<1>(operand, {&result})),
      elements_(operand.numel()),
      results_(result.numel()),
      reduced_(1) {
  for (int i = 0; i < operand.rank(); ++i)
    if (result[i] != operand[i]) reduced_ *= operand[i];
  if (elements_ < 2 * kElementsPerPart) return;
  std::int64_t most = std::min(elements_ / kElementsPerPart, kMostParts);
  if (walk_.step[0][walk_.depth - 1] == 0) {
    cut_ = walk_.depth == 2 && walk_.columns() >= 2 * kLeastColumns ? Cut::columns : Cut::into_partials;
    most = std::min(most,
                    cut_ == Cut::columns ? walk_.columns() / kLeastColumns : reduced_ / kElementsPerPartial);
  }
  parts_ = std::max<std::int64_t>(1, std::min(most, cut_size()));
}

Shape dense_steps(const Shape& shape) {
  Shape steps = shape;
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    steps[i] = step;
    step *= shape[i];
  }
  return steps;
}

template <class T>
void copy_view(T* to, const T* from, const Shape& shape, const Shape& steps) {
  Walk<1> view;
  for (int i = shape.rank() - 1; i >= 0; --i) view.add_dimension(shape[i], {steps[i]});
  if (view.column_step(0) > 1)
    for (int d = view.depth - 1; d > 0; --d)
      if (view.step[0][d] == 1 && shape.numel() > 0) return copy_planes(to, from, view, d);
  const double row_cost = static_cast<double>(view.columns()) * sizeof(T) * kNanosecondsPerByte + 1;
  for_each_row(view, view.columns() * grain_for(row_cost),
               [&](std::int64_t at, const auto& offset, std::int64_t columns) {
                 copy_row(to + at, from + offset[0], columns, view.column_step(0));
               });
}

template void copy_view(float*, const float*, const Shape&, const Shape&);
template void copy_view(double*, const double*, const Shape&, const Shape&);
template void copy_view(std::int32_t*, const std::int32_t*, const Shape&, const Shape&);

}  // namespace handgrad
