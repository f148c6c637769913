#include "handgrad/core/kernels/update_rows.h"

#include "handgrad/core/kernels/sum.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

template <bool kMomentum, bool kNesterov, class T>
void sgd_step(T* value, T* momentum, const T* gradient, int64_t n, const SgdFactors<T>& f) {
  const Vec<T> minus_lr = set(-f.lr), scale = set(f.gradient_scale), l2 = set(f.l2);
  const Vec<T> momentum_factor = set(f.momentum_factor);
  // The first momentum is the gradient itself, whatever the dampening.
  const Vec<T> take = set(f.first ? T(1) : f.gradient_factor);
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> w = load(value + i, lanes);
        const Vec<T> g = fma(l2, w, scale * load(gradient + i, lanes));
        Vec<T> step = g;
        if constexpr (kMomentum) {
          const Vec<T> m = fma(momentum_factor, load(momentum + i, lanes), take * g);
          store(momentum + i, m, lanes);
          step = m;
          if constexpr (kNesterov) step = fma(momentum_factor, m, g);
        }
        store(value + i, fma(minus_lr, step, w), lanes);
      });
}

}  // namespace

template <class T>
void sgd(T* value, T* momentum, const T* gradient, int64_t n, const SgdFactors<T>& f) {
  if (momentum == nullptr) return sgd_step<false, false>(value, momentum, gradient, n, f);
  if (f.nesterov) return sgd_step<true, true>(value, momentum, gradient, n, f);
  sgd_step<true, false>(value, momentum, gradient, n, f);
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

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  Sum<T> sum;
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> numbers = load(x + i, lanes);
        sum.add_product(numbers, numbers);
      });
  return sum.total();
}

template void sgd(float*, float*, const float*, int64_t, const SgdFactors<float>&);
template void sgd(double*, double*, const double*, int64_t, const SgdFactors<double>&);
template void adam(float*, float*, float*, const float*, int64_t, const AdamFactors<float>&);
template void adam(double*, double*, double*, const double*, int64_t, const AdamFactors<double>&);
template double sum_of_squares(const float*, int64_t);
template double sum_of_squares(const double*, int64_t);

}  // namespace handgrad::kernels::HANDGRAD_TARGET
