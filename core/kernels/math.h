// exp, log, tanh, sigmoid and erf of a vector. float: our own polynomials, within 2 ulp over the whole range, with
// the same bits wherever fused multiply-add exists. double: the C library's, lane by lane.
//
// The polynomials are minimax fits of relative error below 2^-27, rounded to float.
#pragma once

#include "handgrad/core/kernels/vec.h"

namespace handgrad::kernels::HANDGRAD_TARGET {

// Coefficients from the highest power down.
template <class... C>
HANDGRAD_INLINE Vec<float> polynomial(Vec<float> x, float highest, C... lower) {
  Vec<float> y = set(highest);
  ((y = fma(y, x, set(lower))), ...);
  return y;
}

template <class F>
HANDGRAD_INLINE Vec<double> lane_by_lane(Vec<double> x, const F& f) {
  double lane[kLanes<double>];
  store(lane, x);
  for (double& value : lane) value = f(value);
  return load(lane);
}

// x = n ln 2 + r with n whole and |r| <= ln(2) / 2.
struct Reduced {
  Vec<float> n;
  Vec<float> r;
};
HANDGRAD_INLINE Reduced reduce(Vec<float> x) {
  const Vec<float> n = round(x * set(1.44269504f));
  // ln 2 in two parts; the first has 10 bits, so n times it is exact with and without fused multiply-add.
  const Vec<float> r = fma(n, set(2.12194440e-4f), fma(n, set(-0.693359375f), x));
  return {n, r};
}

// exp(r) = 1 + r + r^2 P(r) for |r| <= ln(2) / 2
HANDGRAD_INLINE Vec<float> exp_of_rest(Vec<float> r) {
  const Vec<float> p =
      polynomial(r, 1.381314476e-3f, 8.369418792e-3f, 4.166845605e-2f, 1.666651517e-1f, 0.49999994f);
  return set(1.0f) + fma(r * r, p, r);
}

// For x in [-87, 88]: 2^n is a normal number.
HANDGRAD_INLINE Vec<float> exp_in_range(Vec<float> x) {
  const Reduced part = reduce(x);
  return exp_of_rest(part.r) * power_of_two(part.n);
}

template <class T>
HANDGRAD_INLINE Vec<T> exp(Vec<T> x) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return lane_by_lane(x, [](double v) { return __builtin_exp(v); });
  } else {
    // Beyond these the result is inf or 0 anyway. The bound is the first argument so that NaN passes (see min).
    const Reduced part = reduce(max(set(-104.0f), min(set(89.0f), x)));
    // 2^n may be inf or subnormal where the product is not: two steps.
    const Vec<float> half = round(part.n * set(0.5f));
    return exp_of_rest(part.r) * power_of_two(half) * power_of_two(part.n - half);
  }
}

template <class T>
HANDGRAD_INLINE Vec<T> log(Vec<T> x) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return lane_by_lane(x, [](double v) { return __builtin_log(v); });
  } else {
    const Vec<float> zero = set(0.0f);
    const Mask<float> small = less(x, set(1.17549435e-38f));  // subnormal: scaled by 2^23 first
    const Vec<float> normal = select(small, x * set(8388608.0f), x);
    // normal = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
    const IntVec<float> b = bits(abs(normal));
    IntVec<float> mantissa;
    Vec<float> e;
    for (int64_t i = 0; i < kPieces<float>; ++i) {
      const auto exponent = (b.piece[i] - 0x3f3504f3) >> 23;
      mantissa.piece[i] = b.piece[i] - (exponent << 23);
      e.piece[i] = __builtin_convertvector(exponent, Native<float>::Type);
    }
    e = e - select(small, set(23.0f), zero);
    const Vec<float> f = from_bits<float>(mantissa) - set(1.0f);
    // With s = f / (2 + f): log(1 + f) = 2 s + s R(s^2) = f - s (f - R).
    const Vec<float> s = f / (f + set(2.0f));
    const Vec<float> z = s * s;
    const Vec<float> r =
        z * polynomial(z, 2.361052334e-1f, 2.853589058e-1f, 4.000035524e-1f, 6.666666269e-1f);
    const Vec<float> rest = f - fma(s, f - r, e * set(-9.05800061e-6f));
    const Vec<float> y = fma(e, set(0.693138123f), rest);  // ln 2 in two parts; the first has 16 bits

    const Vec<float> inf = set(__builtin_inff());
    const Vec<float> special =
        select(equal(x, zero), -inf, select(less(x, zero), set(__builtin_nanf("")), x));
    return select(both(less(zero, x), less(x, inf)), y, special);
  }
}

template <class T>
HANDGRAD_INLINE Vec<T> tanh(Vec<T> x) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return lane_by_lane(x, [](double v) { return __builtin_tanh(v); });
  } else {
    const Vec<float> size = abs(x);
    const Vec<float> z = x * x;
    const Vec<float> p =
        polynomial(z, -5.657711998e-3f, 2.059807442e-2f, -5.372759327e-2f, 1.333130300e-1f, -3.333327770e-1f);
    const Vec<float> near = fma(z * x, p, x);  // tanh(x) = x + x^3 P(x^2)
    const Vec<float> one = set(1.0f);
    const Vec<float> e = exp_in_range(min(set(20.0f), size + size));
    const Vec<float> far = one - set(2.0f) / (e + one);
    return copy_sign(select(less(size, set(0.625f)), near, far), x);
  }
}

// 1 / (1 + exp(-x))
template <class T>
HANDGRAD_INLINE Vec<T> sigmoid(Vec<T> x) {
  const Vec<T> one = set(T(1));
  const Vec<T> e = exp(-abs(x));  // never overflows, and keeps small results: e / (1 + e) for negative x
  const Vec<T> d = one + e;
  const Vec<T> q = select(less(x, set(T(0))), e, one) / d;
  // Restores what rounding removed from 1 + e; 1.5 - d / 2 is close enough to 1 / d for that.
  const Vec<T> lost = e - (d - one);
  return fma(-q, lost * fma(d, set(T(-0.5)), set(T(1.5))), q);
}

template <class T>
HANDGRAD_INLINE Vec<T> erf(Vec<T> x) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return lane_by_lane(x, [](double v) { return __builtin_erf(v); });
  } else {
    const Vec<float> size = abs(x);
    const Vec<float> z = x * x;
    const Vec<float> p = polynomial(z, -5.953742075e-4f, 4.985940643e-3f, -2.676171996e-2f, 1.128168255e-1f,
                                    -3.761247993e-1f, 1.283791512e-1f);
    const Vec<float> near = fma(x, p, x);  // erf(x) = x + x P(x^2)
    // erfc(t) = exp(t Q(t)); from t = 4 on erf is 1.
    const Vec<float> t = min(set(4.0f), size);
    const Vec<float> q = polynomial(t, -1.083819825e-5f, 3.188815899e-4f, -3.626565449e-3f, 2.372857183e-2f,
                                    -1.061981469e-1f, -6.351746321e-1f, -1.128642797f);
    const Vec<float> far = copy_sign(set(1.0f) - exp_in_range(t * q), x);
    return select(less(size, set(0.92f)), near, far);
  }
}

}  // namespace handgrad::kernels::HANDGRAD_TARGET
