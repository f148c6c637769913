#include "handgrad/core/ops/strided.h"

#include <algorithm>
#include <cstring>

#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

constexpr double kNanosecondsPerByte = 0.1;
constexpr std::int64_t kSquare = 16;  // of a transpose: 16 rows of one cache line each

/// A view without dimensions of size 1, and with neighbours merged where one step serves both.
struct View {
  View(const Shape& of_shape, const Shape& of_steps) {
    for (int i = 0; i < of_shape.rank(); ++i) {
      if (of_shape[i] == 1) continue;
      const int last = shape.rank() - 1;
      if (last >= 0 && steps[last] == of_steps[i] * of_shape[i]) {
        shape[last] *= of_shape[i];
        steps[last] = of_steps[i];
      } else {
        shape.push_back(of_shape[i]);
        steps.push_back(of_steps[i]);
      }
    }
    if (shape.empty()) {
      shape.push_back(1);
      steps.push_back(1);
    }
  }

  /// Takes dimension `dim` out and returns its size and step through the references.
  void take(int dim, std::int64_t& size, std::int64_t& step) {
    size = shape[dim];
    step = steps[dim];
    Shape left_shape, left_steps;
    for (int i = 0; i < shape.rank(); ++i) {
      if (i == dim) continue;
      left_shape.push_back(shape[i]);
      left_steps.push_back(steps[i]);
    }
    shape = left_shape;
    steps = left_steps;
  }

  Shape shape, steps;
};

/// Goes through the elements of a view one after another, without a division for each.
class Cursor {
 public:
  Cursor(const View& view, std::int64_t index) : view_(view) {
    for (int i = view.shape.rank() - 1; i >= 0; --i) {
      at_[i] = index % view.shape[i];
      index /= view.shape[i];
      offset_ += at_[i] * view.steps[i];
    }
  }

  std::int64_t offset() const { return offset_; }

  void advance() {
    for (int i = view_.shape.rank() - 1; i >= 0; --i) {
      offset_ += view_.steps[i];
      if (++at_[i] < view_.shape[i]) return;
      offset_ -= view_.steps[i] * view_.shape[i];
      at_[i] = 0;
    }
  }

 private:
  const View& view_;
  std::int64_t at_[Shape::kMaxRank] = {};
  std::int64_t offset_ = 0;
};

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

/// Rows along the last dimension.
template <class T>
void copy_rows(T* to, const T* from, View view) {
  std::int64_t n = 0, step = 0;
  view.take(view.shape.rank() - 1, n, step);
  const double row_cost = static_cast<double>(n) * sizeof(T) * kNanosecondsPerByte + 1;
  parallel_ranges(view.shape.numel(), grain_for(row_cost), [&](std::int64_t begin, std::int64_t end) {
    Cursor row(view, begin);
    for (std::int64_t r = begin; r < end; ++r, row.advance())
      copy_row(to + r * n, from + row.offset(), n, step);
  });
}

/// to[r * to_row + c] = from[c * from_column + r] for a rectangle.
template <class T>
void transpose(T* to, std::int64_t to_row, const T* from, std::int64_t from_column, std::int64_t rows,
               std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[r * to_row + c] = from[c * from_column + r];
}

/// Planes in which the last dimension of `to` and the dimension `dense`, along which `from` is dense, change
/// places.
template <class T>
void copy_planes(T* to, const T* from, View source, int dense) {
  View target = source;
  target.steps = dense_steps(target.shape);
  std::int64_t columns = 0, rows = 0, from_column = 0, to_row = 0, one = 0;
  source.take(source.shape.rank() - 1, columns, from_column);
  source.take(dense, rows, one);
  target.take(target.shape.rank() - 1, columns, one);
  target.take(dense, rows, to_row);

  const std::int64_t strips = (rows + kSquare - 1) / kSquare;  // of 16 rows, in every plane
  const double strip_cost = static_cast<double>(columns * kSquare) * sizeof(T) * 2 * kNanosecondsPerByte;
  parallel_ranges(source.shape.numel() * strips, grain_for(strip_cost),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      const std::int64_t plane = i / strips, r = i % strips * kSquare;
                      T* strip_to = to + Cursor(target, plane).offset() + r * to_row;
                      const T* strip_from = from + Cursor(source, plane).offset() + r;
                      const std::int64_t height = std::min(kSquare, rows - r);
                      for (std::int64_t c = 0; c < columns; c += kSquare)
                        transpose(strip_to + c, to_row, strip_from + c * from_column, from_column, height,
                                  std::min(kSquare, columns - c));
                    }
                  });
}

}  // namespace

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
  if (shape.numel() == 0) return;
  const View view(shape, steps);
  const int last = view.shape.rank() - 1;
  if (view.steps[last] > 1) {
    for (int i = 0; i < last; ++i)
      if (view.steps[i] == 1) return copy_planes(to, from, view, i);
  }
  copy_rows(to, from, view);
}

template void copy_view(float*, const float*, const Shape&, const Shape&);
template void copy_view(double*, const double*, const Shape&, const Shape&);
template void copy_view(std::int32_t*, const std::int32_t*, const Shape&, const Shape&);

}  // namespace handgrad
