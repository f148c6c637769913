// softmax: a slice of numbers becomes a slice of probabilities; log_softmax: their logarithms.
//
//   p_i = exp(x_i - max) / sum_j exp(x_j - max)          log p_i = x_i - max - log(sum_j exp(x_j - max))
//
// Taking the largest off first changes nothing in the quotient and keeps exp from overflowing. Derivatives:
//
//   softmax      dx = p * (dy - sum(dy * p))             saved: y, which is p
//   log_softmax  dx = dy - exp(y) * sum(dy)              saved: y
//
// A slice of nothing but -inf (all of it masked) has no probabilities: softmax gives zeros, log_softmax -inf, and
// both give zero gradients. NaN or +inf anywhere makes its whole slice NaN.
#include "handgrad/core/kernels/targets.h"

// `rows` rows of `width` numbers, dense. The forward functions read x, the backward functions dy and y; y may be x, and
// dx may be dy.
HANDGRAD_EACH_TARGET(
    template <class T> void softmax_rows(T* y, bool, const T* x, const T*, int64_t rows, int64_t width);
    template <class T>
    void softmax_backward_rows(T* dx, bool add, const T* dy, const T* y, int64_t rows, int64_t width);
    template <class T> void log_softmax_rows(T* y, bool, const T* x, const T*, int64_t rows, int64_t width);
    template <class T>
    void log_softmax_backward_rows(T* dx, bool add, const T* dy, const T* y, int64_t rows, int64_t width);)

#ifdef HANDGRAD_TARGET  // compiled once for each instruction set

#include "handgrad/core/kernels/sum_exp.h"

namespace handgrad::kernels::HANDGRAD_TARGET {

template <class T>
void softmax_rows(T* y, bool, const T* x, const T*, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const Vec<T> offset = set(offset_for(largest_of(x, width)));
    Sum<T> sum;
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> e = select(lanes, exp(load(x + i, lanes) - offset), set(T(0)));
          store(y + i, e, lanes);
          sum.add(e);
        });
    const double total = sum.total();
    const Vec<T> factor = set(static_cast<T>(total == 0 ? 0 : 1 / total));
    each<T>(
        width, [&](int64_t i, auto lanes)
                   __attribute__((always_inline)) { store(y + i, load(y + i, lanes) * factor, lanes); });
  }
}

template <class T>
void softmax_backward_rows(T* dx, bool add, const T* dy, const T* y, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, dx += width, dy += width, y += width) {
    Sum<T> sum;
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          sum.add_product(load(dy + i, lanes), load(y + i, lanes));
        });
    const Vec<T> dy_y = set(static_cast<T>(sum.total()));
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> r = load(y + i, lanes) * (load(dy + i, lanes) - dy_y);
          store(dx + i, add ? load(dx + i, lanes) + r : r, lanes);
        });
  }
}

template <class T>
void log_softmax_rows(T* y, bool, const T* x, const T*, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const double offset = offset_for(log_sum_exp(x, width));
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          store(y + i, subtract(load(x + i, lanes), offset), lanes);
        });
  }
}

template <class T>
void log_softmax_backward_rows(T* dx, bool add, const T* dy, const T* y, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, dx += width, dy += width, y += width) {
    Sum<T> sum;
    bool all_masked = true;
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          sum.add(load(dy + i, lanes));
          const Vec<T> log_p = select(lanes, load(y + i, lanes), set(-kInfinity<T>));
          if (any(invert(equal(log_p, set(-kInfinity<T>))))) all_masked = false;
        });
    const Vec<T> sum_dy = set(static_cast<T>(sum.total()));
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> p = exp(load(y + i, lanes));
          const Vec<T> r = all_masked ? set(T(0)) : load(dy + i, lanes) - p * sum_dy;
          store(dx + i, add ? load(dx + i, lanes) + r : r, lanes);
        });
  }
}

template void softmax_rows(float*, bool, const float*, const float*, int64_t, int64_t);
template void softmax_rows(double*, bool, const double*, const double*, int64_t, int64_t);
template void softmax_backward_rows(float*, bool, const float*, const float*, int64_t, int64_t);
template void softmax_backward_rows(double*, bool, const double*, const double*, int64_t, int64_t);
template void log_softmax_rows(float*, bool, const float*, const float*, int64_t, int64_t);
template void log_softmax_rows(double*, bool, const double*, const double*, int64_t, int64_t);
template void log_softmax_backward_rows(float*, bool, const float*, const float*, int64_t, int64_t);
template void log_softmax_backward_rows(double*, bool, const double*, const double*, int64_t, int64_t);

}  // namespace handgrad::kernels::HANDGRAD_TARGET

#else

#include <algorithm>

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

/// The slices along one dimension: [outer, size, inner] with the dimension in the middle.
struct Slices {
  Slices(const Shape& shape, int dim)
      : outer(shape.numel(0, dim)), size(shape[dim]), inner(shape.numel(dim + 1, shape.rank())) {}
  std::int64_t outer, size, inner;
};

/// to [columns, size] = from [size, columns] transposed, where rows of the longer matrix are `inner` apart.
template <class T>
void gather(T* to, const T* from, const Slices& s, std::int64_t columns) {
  for (std::int64_t i = 0; i < s.size; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[j * s.size + i] = from[i * s.inner + j];
}
template <class T>
void scatter(T* to, bool add, const T* from, const Slices& s, std::int64_t columns) {
  for (std::int64_t i = 0; i < s.size; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      T& element = to[i * s.inner + j];
      element = add ? element + from[j * s.size + i] : from[j * s.size + i];
    }
}

/// Calls rows(out, add, a, b, count, size) for every slice as a row of a dense matrix: in place when the dimension is
/// the last one, else through a transposed copy. `b` may be nullptr.
template <class T, class Rows>
void for_slices(const Slices& s, T* out, bool add, const T* a, const T* b, const Rows& rows) {
  const std::int64_t grain = grain_for(20 + 2.0 * static_cast<double>(s.size));
  if (s.inner == 1) {
    parallel_ranges(s.outer, grain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * s.size;
      rows(out + at, add, a + at, b == nullptr ? b : b + at, end - begin, s.size);
    });
    return;
  }
  const std::int64_t columns = std::clamp(grain, std::int64_t{16}, std::int64_t{256});
  const std::int64_t blocks = (s.inner + columns - 1) / columns;
  parallel_for(s.outer * blocks, [&](std::int64_t i) {
    const std::int64_t first = i % blocks * columns;
    const std::int64_t count = std::min(columns, s.inner - first);
    const std::int64_t at = i / blocks * s.size * s.inner + first;
    const Scratch scratch(static_cast<std::size_t>(2 * count * s.size) * sizeof(T));
    T* const row_a = scratch.as<T>();
    T* const row_b = b == nullptr ? nullptr : row_a + count * s.size;
    gather(row_a, a + at, s, count);
    if (b != nullptr) gather(row_b, b + at, s, count);
    rows(row_a, false, row_a, row_b, count, s.size);
    scatter(out + at, add, row_a, s, count);
  });
}

/// y, of x along dimension `dim`.
template <class Kernel>
Tensor forward(const char* op, const Tensor& x, int dim, const Kernel& kernel, Backward derivative) {
  checks::common_type(op, {{"x", x}});
  const int at = checks::dimension(op, dim, x);
  Array y = Array::like(x.array());
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_slices<T>(Slices(x.shape(), at), y.mutable_data<T>(), false, x.array().data<T>(), nullptr,
                  kernel.template operator()<T>());
  });
  return record(op, y, {x}, {{"y", y}}, derivative, {{"dim", static_cast<double>(at)}});
}

/// dx from dy and the saved y.
template <class Kernel>
void backward(const Node& node, const Array& dy, GradSink& sink, const Kernel& kernel) {
  const Array& y = node.saved("y");
  const GradSink::Target dx = sink.into(0);
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_slices<T>(Slices(y.shape(), static_cast<int>(node.number("dim"))), dx.array.mutable_data<T>(), dx.add,
                  dy.data<T>(), y.data<T>(), kernel.template operator()<T>());
  });
}

void softmax_backward(const Node& node, const Array& dy, GradSink& sink) {
  backward(node, dy, sink, HANDGRAD_ROWS(softmax_backward_rows));
}

void log_softmax_backward(const Node& node, const Array& dy, GradSink& sink) {
  backward(node, dy, sink, HANDGRAD_ROWS(log_softmax_backward_rows));
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) {
  return forward("softmax", x, dim, HANDGRAD_ROWS(softmax_rows), softmax_backward);
}

Tensor softmax_composed(const Tensor& x, int dim) {
  checks::common_type("softmax_composed", {{"x", x}});
  const int at = checks::dimension("softmax_composed", dim, x);
  // The largest number takes no part in the derivative: it cancels in the quotient.
  const Tensor powers = exp(x - max(x.detach(), {at}, KeepDim::yes));
  return powers / sum(powers, {at}, KeepDim::yes);
}

Tensor log_softmax(const Tensor& x, int dim) {
  return forward("log_softmax", x, dim, HANDGRAD_ROWS(log_softmax_rows), log_softmax_backward);
}

}  // namespace handgrad

#endif
