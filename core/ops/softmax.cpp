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
#include <algorithm>

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/kernels/table.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/log_sum_exp.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

/// The slices along one dimension: [outer, size, inner] with the dimension in the middle.
struct Slices {
  Slices(const Shape& shape, int dim) : size(shape[dim]) {
    for (int i = 0; i < dim; ++i) outer *= shape[i];
    for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
  std::int64_t outer = 1, size, inner = 1;
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

/// Calls rows(out, add, a, b, count) for every slice as a row of a dense matrix: in place when the dimension is the
/// last one, else by way of a transposed copy. `b` may be nullptr.
template <class T, class Rows>
void for_slices(const Slices& s, T* out, bool add, const T* a, const T* b, const Rows& rows) {
  const std::int64_t grain = grain_for(20 + 2.0 * static_cast<double>(s.size));
  if (s.inner == 1) {
    parallel_ranges(s.outer, grain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * s.size;
      rows(out + at, add, a + at, b == nullptr ? b : b + at, end - begin);
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
    rows(row_a, false, row_a, row_b, count);
    scatter(out + at, add, row_a, s, count);
  });
}

template <class T>
void softmax_slices(Array& y, const Array& x, const Slices& s) {
  const auto& kernel = kernels::table<T>().softmax_rows.softmax;
  for_slices(s, y.mutable_data<T>(), false, x.data<T>(), static_cast<const T*>(nullptr),
             [&](T* out, bool, const T* in, const T*, std::int64_t rows) { kernel(out, in, rows, s.size); });
}

template <class T>
void log_softmax_slices(Array& y, const Array& x, const Slices& s) {
  const auto& kernel = kernels::table<T>().softmax_rows.log_softmax;
  for_slices(s, y.mutable_data<T>(), false, x.data<T>(), static_cast<const T*>(nullptr),
             [&](T* out, bool, const T* in, const T*, std::int64_t rows) {
               constexpr std::int64_t kBlock = 64;
               double log_sum[kBlock];
               for (std::int64_t i = 0; i < rows; i += kBlock) {
                 const std::int64_t n = std::min(kBlock, rows - i);
                 log_sum_exp(log_sum, in + i * s.size, n, s.size);
                 kernel(out + i * s.size, in + i * s.size, log_sum, n, s.size);
               }
             });
}

/// Backward of both: dx from dy and the saved y.
template <class T, class Kernel>
void backward_slices(const Node& node, const Array& dy, GradSink& sink, const Kernel& kernel) {
  const Array& y = node.saved("y");
  const Slices s(y.shape(), static_cast<int>(node.number("dim")));
  const GradSink::Target dx = sink.into(0);
  for_slices(s, dx.array.template mutable_data<T>(), dx.add, dy.data<T>(), y.data<T>(),
             [&](T* out, bool add, const T* upstream, const T* saved, std::int64_t rows) {
               kernel(out, add, upstream, saved, rows, s.size);
             });
}

void softmax_backward(const Node& node, const Array& dy, GradSink& sink) {
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    backward_slices<T>(node, dy, sink, kernels::table<T>().softmax_rows.softmax_backward);
  });
}

void log_softmax_backward(const Node& node, const Array& dy, GradSink& sink) {
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    backward_slices<T>(node, dy, sink, kernels::table<T>().softmax_rows.log_softmax_backward);
  });
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) {
  checks::common_type("softmax", {{"x", x}});
  const int at = checks::dimension("softmax", dim, x);
  Array y(x.shape(), x.dtype());
  dispatch(x.dtype(),
           [&](auto zero) { softmax_slices<decltype(zero)>(y, x.array(), Slices(x.shape(), at)); });
  return record("softmax", y, {x}, {{"y", y}}, softmax_backward, {{"dim", static_cast<double>(at)}});
}

Tensor log_softmax(const Tensor& x, int dim) {
  checks::common_type("log_softmax", {{"x", x}});
  const int at = checks::dimension("log_softmax", dim, x);
  Array y(x.shape(), x.dtype());
  dispatch(x.dtype(),
           [&](auto zero) { log_softmax_slices<decltype(zero)>(y, x.array(), Slices(x.shape(), at)); });
  return record("log_softmax", y, {x}, {{"y", y}}, log_softmax_backward, {{"dim", static_cast<double>(at)}});
}

}  // namespace handgrad
