// layer_norm moves every row to mean 0 and variance 1, then scales and shifts it feature by feature. rms_norm (Zhang
// and Sennrich, "Root mean square layer normalization", 2019) is the same with mean = 0 and without shift.
//
//   mean = sum(x) / C    var = sum((x - mean)^2) / C    rstd = 1 / sqrt(var + eps)
//   xhat = (x - mean) * rstd    y = scale * xhat + shift
//
//   x, y [..., C]    scale, shift [C]    mean, rstd [..., 1], always float64
//
// The variance is biased (divides by C, as in the book and in GPT-2) and takes two passes, the mean first: mean(x^2) -
// mean^2 loses every digit when the mean is large. Statistics are taken and kept in double: as float32 the mean of a
// row near a million would be off by up to 0.03. x - mean comes before the product with rstd, so that a row of equal
// numbers gives exactly the shift.
//
// Derivative, with g = dy * scale, the gradient of the normalized numbers:
//
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat))    dscale = sum over rows(dy * xhat)    dshift = sum over rows(dy)
//
// The two means are there because x also moves its row's mean (rms_norm has no mean(g)) and variance. A row whose
// variance and eps are both 0 gives NaN: 0 / 0.
//
// Saved: x, scale, mean, rstd. xhat is computed again: keeping it would take as much memory as x.
#include "handgrad/core/kernels/targets.h"

namespace handgrad::kernels {

/// What forward reads and writes, from the first row on. rms_norm has no shift and no mean: nullptr.
template <class T>
struct NormForward {
  T* y;
  double *mean, *rstd;  // nullptr: not kept
  const T *x, *scale, *shift;
  double eps;
  int64_t width;
};

/// dx is written, or added to when `add` is set, unless it is nullptr.
template <class T>
struct NormBackward {
  T* dx;
  bool add;
  const T *dy, *x, *scale;
  const double *mean, *rstd;
  int64_t width;
};

}  // namespace handgrad::kernels

HANDGRAD_EACH_TARGET(template <class T> void norm_forward(const NormForward<T>&, int64_t begin, int64_t end);
                     template <class T> void norm_backward(const NormBackward<T>&, double* const* sums,
                                                           int64_t begin, int64_t end);)

#ifdef HANDGRAD_TARGET  // compiled once for each instruction set

#include "handgrad/core/kernels/sum.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

// x - mean; for rms_norm x.
template <bool kCentered, class T>
HANDGRAD_INLINE Vec<T> center(Vec<T> x, double mean) {
  if constexpr (kCentered) return subtract(x, mean);
  return x;
}

template <class T>
HANDGRAD_INLINE double mean_of(const T* x, int64_t width) {
  Sum<T> sum;
  each<T>(
      width, [&](int64_t i, auto lanes) __attribute__((always_inline)) { sum.add(load(x + i, lanes)); });
  return sum.total() / static_cast<double>(width);
}

template <bool kCentered, class T>
HANDGRAD_INLINE double variance_of(const T* x, double mean, int64_t width) {
  Sum<T> sum;
  each<T>(
      width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> centered = select(lanes, center<kCentered>(load(x + i, lanes), mean), set(T(0)));
        sum.add_product(centered, centered);
      });
  return sum.total() / static_cast<double>(width);
}

// Whether products with rstd stay far from overflow and underflow in T. Other rows ([1e30, -1e30], or NaN) are
// computed in double, number by number.
template <class T>
HANDGRAD_INLINE bool is_ordinary(double rstd) {
  return sizeof(T) == sizeof(double) || (rstd > 0x1p-60 && rstd < 0x1p60);
}

template <class T>
__attribute__((noinline)) void forward_in_double(const NormForward<T>& norm, int64_t row, double mean,
                                                 double rstd) {
  const T* x = norm.x + row * norm.width;
  T* y = norm.y + row * norm.width;
  for (int64_t i = 0; i < norm.width; ++i) {
    const double shift = norm.shift != nullptr ? static_cast<double>(norm.shift[i]) : 0.0;
    const double xhat = (static_cast<double>(x[i]) - mean) * rstd;
    y[i] = static_cast<T>(xhat * static_cast<double>(norm.scale[i]) + shift);
  }
}

template <bool kCentered, class T>
void forward_rows(const NormForward<T>& norm, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const T* x = norm.x + row * norm.width;
    T* y = norm.y + row * norm.width;
    const double mean = kCentered ? mean_of(x, norm.width) : 0.0;
    const double rstd = 1.0 / __builtin_sqrt(variance_of<kCentered>(x, mean, norm.width) + norm.eps);
    if (norm.mean != nullptr) norm.mean[row] = mean;
    if (norm.rstd != nullptr) norm.rstd[row] = rstd;
    if (!is_ordinary<T>(rstd)) {
      forward_in_double(norm, row, mean, rstd);
      continue;
    }
    const Vec<T> factor = set(static_cast<T>(rstd));
    each<T>(
        norm.width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> xhat = center<kCentered>(load(x + i, lanes), mean) * factor;
          const Vec<T> scale = load(norm.scale + i, lanes);
          if constexpr (kCentered) {
            store(y + i, fma(xhat, scale, load(norm.shift + i, lanes)), lanes);
          } else {
            store(y + i, xhat * scale, lanes);
          }
        });
  }
}

template <bool kCentered, class T>
__attribute__((noinline)) void backward_in_double(const NormBackward<T>& norm, double* dscale, double* dshift,
                                                  int64_t row) {
  const double mean = kCentered ? norm.mean[row] : 0.0;
  const double rstd = norm.rstd[row];
  const T* x = norm.x + row * norm.width;
  const T* dy = norm.dy + row * norm.width;
  double mean_g = 0, mean_g_xhat = 0;
  for (int64_t i = 0; i < norm.width; ++i) {
    const double g = static_cast<double>(dy[i]) * static_cast<double>(norm.scale[i]);
    const double xhat = (static_cast<double>(x[i]) - mean) * rstd;
    if (kCentered) mean_g += g / static_cast<double>(norm.width);
    mean_g_xhat += g * xhat / static_cast<double>(norm.width);
  }
  for (int64_t i = 0; i < norm.width; ++i) {
    const double g = static_cast<double>(dy[i]) * static_cast<double>(norm.scale[i]);
    const double xhat = (static_cast<double>(x[i]) - mean) * rstd;
    if (dscale != nullptr) dscale[i] += static_cast<double>(dy[i]) * xhat;
    if (dshift != nullptr) dshift[i] += static_cast<double>(dy[i]);
    if (norm.dx == nullptr) continue;
    const T dx = static_cast<T>(rstd * (g - mean_g - xhat * mean_g_xhat));
    T& to = norm.dx[row * norm.width + i];
    to = norm.add ? to + dx : dx;
  }
}

template <bool kCentered, class T>
HANDGRAD_INLINE void backward_row(const NormBackward<T>& norm, double* dscale, double* dshift, int64_t row) {
  const T* x = norm.x + row * norm.width;
  const T* dy = norm.dy + row * norm.width;
  const double mean = kCentered ? norm.mean[row] : 0.0;
  const Vec<T> rstd = set(static_cast<T>(norm.rstd[row]));
  Sum<T> sum_g, sum_g_xhat;
  if (norm.dx != nullptr) {
    each<T>(
        norm.width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> g = load(dy + i, lanes) * load(norm.scale + i, lanes);
          const Vec<T> xhat = select(lanes, center<kCentered>(load(x + i, lanes), mean) * rstd, set(T(0)));
          if constexpr (kCentered) sum_g.add(g);
          sum_g_xhat.add_product(g, xhat);
        });
  }
  const double mean_g = sum_g.total() / static_cast<double>(norm.width);
  const Vec<T> mean_g_xhat = set(static_cast<T>(sum_g_xhat.total() / static_cast<double>(norm.width)));
  each<T>(
      norm.width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> dy_i = load(dy + i, lanes);
        const Vec<T> xhat = center<kCentered>(load(x + i, lanes), mean) * rstd;
        if (dscale != nullptr) add_product_to(dscale + i, dy_i, xhat);
        if (dshift != nullptr) add_to(dshift + i, dy_i);
        if (norm.dx == nullptr) return;
        const Vec<T> g = center<kCentered>(dy_i * load(norm.scale + i, lanes), mean_g);
        const Vec<T> dx = rstd * fma(-xhat, mean_g_xhat, g);
        T* to = norm.dx + row * norm.width + i;
        store(to, norm.add ? load(to, lanes) + dx : dx, lanes);
      });
}

template <bool kCentered, class T>
void backward_rows(const NormBackward<T>& norm, double* dscale, double* dshift, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    if (is_ordinary<T>(norm.rstd[row])) {
      backward_row<kCentered>(norm, dscale, dshift, row);
    } else {
      backward_in_double<kCentered>(norm, dscale, dshift, row);
    }
  }
}

}  // namespace

template <class T>
void norm_forward(const NormForward<T>& norm, int64_t begin, int64_t end) {
  norm.shift != nullptr ? forward_rows<true>(norm, begin, end) : forward_rows<false>(norm, begin, end);
}

template <class T>
void norm_backward(const NormBackward<T>& norm, double* const* sums, int64_t begin, int64_t end) {
  norm.mean != nullptr ? backward_rows<true>(norm, sums[0], sums[1], begin, end)
                       : backward_rows<false>(norm, sums[0], nullptr, begin, end);
}

template void norm_forward(const NormForward<float>&, int64_t, int64_t);
template void norm_forward(const NormForward<double>&, int64_t, int64_t);
template void norm_backward(const NormBackward<float>&, double* const*, int64_t, int64_t);
template void norm_backward(const NormBackward<double>&, double* const*, int64_t, int64_t);

}  // namespace handgrad::kernels::HANDGRAD_TARGET

#else

#include "handgrad/core/checks.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/rows.h"

namespace handgrad {
namespace {

/// The first operand is x, the others are rows of C numbers.
void check(const char* op, double eps, std::initializer_list<checks::Named> operands) {
  const Tensor& x = operands.begin()->tensor;
  checks::common_type(op, operands);
  if (x.rank() == 0) [[unlikely]]
    checks::throw_shape(op, "x must have at least one dimension, the features", {*operands.begin()});
  for (const auto* row = operands.begin() + 1; row != operands.end(); ++row)
    checks::vector(op, *row, x.size(-1), "the last dimension of x", operands);
  checks::value(op, eps >= 0, "eps must be at least 0", eps, operands);
}

double nanoseconds(std::int64_t width) { return 20.0 + 0.3 * static_cast<double>(width); }  // of a row

/// Both norms; rms_norm has no shift and no mean.
template <bool kCentered>
void forward(const Array& x, const Array& scale, const Array& shift, double eps, Array& y, Array& mean,
             Array& rstd) {
  const std::int64_t width = x.shape().last();
  for_rows(x, nanoseconds(width), HANDGRAD_ROWS(norm_forward), [&]<class T>() {
    return kernels::NormForward<T>{
        .y = y.mutable_data<T>(),
        .mean = kCentered ? mean.mutable_data<double>() : nullptr,
        .rstd = rstd.mutable_data<double>(),
        .x = x.data<T>(),
        .scale = scale.data<T>(),
        .shift = kCentered ? shift.data<T>() : nullptr,
        .eps = eps,
        .width = width,
    };
  });
}

/// Both norms; `kSummed` are the inputs with one row of numbers: scale and, for layer_norm, shift.
template <bool kCentered, int... kSummed>
void backward(const Node& node, const Array& dy, GradSink& sink) {
  const Array& x = node.saved("x");
  const std::int64_t width = x.shape().last();
  const auto operands = [&]<class T>() {
    kernels::NormBackward<T> norm{
        .dx = nullptr,
        .add = false,
        .dy = dy.data<T>(),
        .x = x.data<T>(),
        .scale = node.saved("scale").data<T>(),
        .mean = kCentered ? node.saved("mean").data<double>() : nullptr,
        .rstd = node.saved("rstd").data<double>(),
        .width = width,
    };
    if (sink.wants(0)) {
      const auto dx = sink.into(0);
      norm.dx = dx.array.template mutable_data<T>();
      norm.add = dx.add;
    }
    return norm;
  };
  for_rows<kSummed...>(x, nanoseconds(width), HANDGRAD_ROWS(norm_backward), operands, sink);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps) {
  check("layer_norm", eps, {{"x", x}, {"scale", scale}, {"shift", shift}});
  Array y = Array::like(x.array());
  Array mean, rstd;
  if (will_record({x, scale, shift})) mean = Array::per_row(y), rstd = Array::per_row(y);
  forward<true>(x.array(), scale.array(), shift.array(), eps, y, mean, rstd);
  return record("layer_norm", y, {x, scale, shift},
                {{"x", x.array()}, {"scale", scale.array()}, {"mean", mean}, {"rstd", rstd}},
                backward<true, 1, 2>, {{"eps", eps}});
}

Tensor layer_norm_composed(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps) {
  check("layer_norm_composed", eps, {{"x", x}, {"scale", scale}, {"shift", shift}});
  const Tensor centered = x - mean(x, kLast, KeepDim::yes);
  const Tensor variance = mean(square(centered), kLast, KeepDim::yes);
  const Tensor deviation = sqrt(variance + eps);
  const Tensor normalized = centered / deviation;
  return scale * normalized + shift;
}

Tensor rms_norm(const Tensor& x, const Tensor& scale, double eps) {
  check("rms_norm", eps, {{"x", x}, {"scale", scale}});
  Array y = Array::like(x.array());
  Array no_mean, rstd;
  if (will_record({x, scale})) rstd = Array::per_row(y);
  forward<false>(x.array(), scale.array(), {}, eps, y, no_mean, rstd);
  return record("rms_norm", y, {x, scale}, {{"x", x.array()}, {"scale", scale.array()}, {"rstd", rstd}},
                backward<false, 1>, {{"eps", eps}});
}

Tensor rms_norm_composed(const Tensor& x, const Tensor& scale, double eps) {
  check("rms_norm_composed", eps, {{"x", x}, {"scale", scale}});
  const Tensor root_mean_square = sqrt(mean(square(x), kLast, KeepDim::yes) + eps);
  return scale * (x / root_mean_square);
}

}  // namespace handgrad

#endif
