#include "handgrad/core/kernels/update_rows.h"

#include "handgrad/core/kernels/vec.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

template <class T>
void sgd_plain(T* value, const T* gradient, int64_t n, const SgdFactors<T>& f) {
  const Vec<T> minus_lr = set(-f.lr), scale = set(f.gradient_scale), l2 = set(f.l2);
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> w = load(value + i, lanes);
        const Vec<T> g = fma(l2, w, scale * load(gradient + i, lanes));
        store(value + i, fma(minus_lr, g, w), lanes);
      });
}

template <bool Nesterov, class T>
void sgd_momentum(T* value, T* momentum, const T* gradient, int64_t n, const SgdFactors<T>& f) {
  const Vec<T> minus_lr = set(-f.lr), scale = set(f.gradient_scale), l2 = set(f.l2);
  const Vec<T> momentum_factor = set(f.momentum_factor);
  // The first momentum is the gradient itself, whatever the dampening.
  const Vec<T> take = set(f.first ? T(1) : f.gradient_factor);
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> w = load(value + i, lanes);
        const Vec<T> g = fma(l2, w, scale * load(gradient + i, lanes));
        const Vec<T> m = fma(momentum_factor, load(momentum + i, lanes), take * g);
        store(momentum + i, m, lanes);
        Vec<T> step = m;
        if constexpr (Nesterov) step = fma(momentum_factor, m, g);
        store(value + i, fma(minus_lr, step, w), lanes);
      });
}

template <class T>
void sgd(T* value, T* momentum, const T* gradient, int64_t n, const SgdFactors<T>& f) {
  if (momentum == nullptr) return sgd_plain(value, gradient, n, f);
  if (f.nesterov) return sgd_momentum<true>(value, momentum, gradient, n, f);
  sgd_momentum<false>(value, momentum, gradient, n, f);
}

template <class T>
void adam(T* value, T* m, T* v, const T* gradient, int64_t n, const AdamFactors<T>& f) {
  const Vec<T> scale = set(f.gradient_scale), l2 = set(f.l2), keep = set(f.keep);
  const Vec<T> take_m = set(f.one_minus_beta1), keep_v = set(f.beta2), take_v = set(f.one_minus_beta2);
  const Vec<T> minus_step = set(-f.step_size), root_correction = set(f.root_correction), eps = set(f.eps);
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> w = load(value + i, lanes);
        const Vec<T> g = fma(l2, w, scale * load(gradient + i, lanes));
        const Vec<T> m_before = load(m + i, lanes);
        const Vec<T> m_now = fma(g - m_before, take_m, m_before);
        const Vec<T> v_now = fma(keep_v, load(v + i, lanes), take_v * g * g);
        store(m + i, m_now, lanes);
        store(v + i, v_now, lanes);
        const Vec<T> deviation = fma(sqrt(v_now), root_correction, eps);
        store(value + i, fma(minus_step, m_now / deviation, keep * w), lanes);
      });
}

double sum_of_squares(const float* x, int64_t n) {
  Vec<double> low = set(0.0), high = set(0.0);
  each<float>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Wide wide = widen(load(x + i, lanes));
        low = fma(wide.low, wide.low, low);
        high = fma(wide.high, wide.high, high);
      });
  return horizontal_sum(low + high);
}

double sum_of_squares(const double* x, int64_t n) {
  Vec<double> sum = set(0.0);
  each<double>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<double> numbers = load(x + i, lanes);
        sum = fma(numbers, numbers, sum);
      });
  return horizontal_sum(sum);
}

}  // namespace

template <class T>
UpdateRows<T> update_rows() {
  return {
      .sgd = sgd<T>,
      .adam = adam<T>,
      .sum_of_squares = sum_of_squares,
  };
}
template UpdateRows<float> update_rows();
template UpdateRows<double> update_rows();

}  // namespace handgrad::kernels::HANDGRAD_TARGET
