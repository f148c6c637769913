#include "handgrad/core/kernels/norm_rows.h"

#include "handgrad/core/kernels/sum.h"
#include "handgrad/core/kernels/vec.h"
#include "handgrad/core/kernels/wide_offset.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

// x - mean; rms_norm has no mean.
template <class T, bool kCentered>
struct Center {
  WideOffset<T> mean;

  HANDGRAD_INLINE explicit Center(double mean_of_row) : mean(mean_of_row) {}
  HANDGRAD_INLINE Vec<T> operator()(Vec<T> x) const {
    if constexpr (kCentered) return mean.taken_from(x);
    return x;
  }
};

template <class T>
HANDGRAD_INLINE double mean_of(const T* x, int64_t width) {
  Sum<T> sum;
  each<T>(
      width, [&](int64_t i, auto lanes) __attribute__((always_inline)) { sum.add(load(x + i, lanes)); });
  return sum.total() / static_cast<double>(width);
}

template <bool kCentered, class T>
HANDGRAD_INLINE double variance_of(const T* x, double mean, int64_t width) {
  const Center<T, kCentered> center(mean);
  const Vec<T> zero = set(T(0));
  Sum<T> sum;
  each<T>(
      width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> centered = select(lanes, center(load(x + i, lanes)), zero);
        sum.add_product(centered, centered);
      });
  return sum.total() / static_cast<double>(width);
}

// Whether float arithmetic on centered numbers and rstd stays far from overflow and underflow. Rows that it does
// not suit ([1e30, -1e30], or NaN) are computed in double, number by number.
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
    y[i] = static_cast<T>((static_cast<double>(x[i]) - mean) * rstd * static_cast<double>(norm.scale[i]) +
                          shift);
  }
}

template <bool kCentered, class T>
void forward(const NormForward<T>& norm, int64_t begin, int64_t end) {
  const int64_t width = norm.width;
  for (int64_t row = begin; row < end; ++row) {
    const T* x = norm.x + row * width;
    T* y = norm.y + row * width;
    const double mean = kCentered ? mean_of(x, width) : 0.0;
    const double rstd = 1.0 / __builtin_sqrt(variance_of<kCentered>(x, mean, width) + norm.eps);
    if (norm.mean != nullptr) norm.mean[row] = mean;
    if (norm.rstd != nullptr) norm.rstd[row] = rstd;
    if (!is_ordinary<T>(rstd)) {
      forward_in_double(norm, row, mean, rstd);
      continue;
    }
    const Center<T, kCentered> center(mean);
    const Vec<T> factor = set(static_cast<T>(rstd));
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> normalized = center(load(x + i, lanes)) * factor;
          const Vec<T> scale = load(norm.scale + i, lanes);
          if constexpr (kCentered) {
            store(y + i, fma(normalized, scale, load(norm.shift + i, lanes)), lanes);
          } else {
            store(y + i, normalized * scale, lanes);
          }
        });
  }
}

template <bool kCentered, class T>
__attribute__((noinline)) void backward_in_double(const NormBackward<T>& norm, int64_t row) {
  const int64_t width = norm.width;
  const double mean = kCentered ? norm.mean[row] : 0.0;
  const double rstd = norm.rstd[row];
  const T* x = norm.x + row * width;
  const T* dy = norm.dy + row * width;
  double mean_g = 0, mean_g_xhat = 0;
  for (int64_t i = 0; i < width; ++i) {
    const double g = static_cast<double>(dy[i]) * static_cast<double>(norm.scale[i]);
    const double xhat = (static_cast<double>(x[i]) - mean) * rstd;
    if (kCentered) mean_g += g / static_cast<double>(width);
    mean_g_xhat += g * xhat / static_cast<double>(width);
  }
  for (int64_t i = 0; i < width; ++i) {
    const double g = static_cast<double>(dy[i]) * static_cast<double>(norm.scale[i]);
    const double xhat = (static_cast<double>(x[i]) - mean) * rstd;
    if (norm.dscale != nullptr) norm.dscale[i] += static_cast<double>(dy[i]) * xhat;
    if (norm.dshift != nullptr) norm.dshift[i] += static_cast<double>(dy[i]);
    if (norm.dx == nullptr) continue;
    const T dx = static_cast<T>(rstd * (g - mean_g - xhat * mean_g_xhat));
    T& to = norm.dx[row * width + i];
    to = norm.add ? to + dx : dx;
  }
}

template <bool kCentered, class T>
HANDGRAD_INLINE void backward_row(const NormBackward<T>& norm, int64_t row) {
  const int64_t width = norm.width;
  const T* x = norm.x + row * width;
  const T* dy = norm.dy + row * width;
  const Center<T, kCentered> center(kCentered ? norm.mean[row] : 0.0);
  const Vec<T> rstd = set(static_cast<T>(norm.rstd[row]));
  Sum<T> sum_g, sum_g_xhat;
  if (norm.dx != nullptr) {
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> g = load(dy + i, lanes) * load(norm.scale + i, lanes);
          const Vec<T> xhat = select(lanes, center(load(x + i, lanes)) * rstd, set(T(0)));
          if constexpr (kCentered) sum_g.add(g);
          sum_g_xhat.add_product(g, xhat);
        });
  }
  const Center<T, kCentered> center_g(sum_g.total() / static_cast<double>(width));
  const Vec<T> mean_g_xhat = set(static_cast<T>(sum_g_xhat.total() / static_cast<double>(width)));
  each<T>(
      width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> dy_i = load(dy + i, lanes);
        const Vec<T> xhat = center(load(x + i, lanes)) * rstd;
        if (norm.dscale != nullptr) add_product_to(norm.dscale + i, dy_i, xhat);
        if (norm.dshift != nullptr) add_to(norm.dshift + i, dy_i);
        if (norm.dx == nullptr) return;
        const Vec<T> g = center_g(dy_i * load(norm.scale + i, lanes));
        const Vec<T> dx = rstd * fma(-xhat, mean_g_xhat, g);
        T* to = norm.dx + row * width + i;
        store(to, norm.add ? load(to, lanes) + dx : dx, lanes);
      });
}

template <bool kCentered, class T>
void backward(const NormBackward<T>& norm, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    if (is_ordinary<T>(norm.rstd[row])) {
      backward_row<kCentered>(norm, row);
    } else {
      backward_in_double<kCentered>(norm, row);
    }
  }
}

}  // namespace

template <class T>
NormRows<T> norm_rows() {
  return {
      .layer_norm = forward<true, T>,
      .layer_norm_backward = backward<true, T>,
      .rms_norm = forward<false, T>,
      .rms_norm_backward = backward<false, T>,
  };
}
template NormRows<float> norm_rows();
template NormRows<double> norm_rows();

}  // namespace handgrad::kernels::HANDGRAD_TARGET
