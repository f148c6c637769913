// What softmax, its logarithm and cross_entropy share: the sum of a row's exponentials.
#pragma once

#include "handgrad/core/kernels/math.h"
#include "handgrad/core/kernels/sum.h"

namespace handgrad {
double portable_log(double x);  // core/random.h, which includes the standard library
}

namespace handgrad::kernels::HANDGRAD_TARGET {

template <class T>
inline constexpr T kInfinity = static_cast<T>(__builtin_inf());

// The largest element that is not NaN; -inf when there is none.
template <class T>
HANDGRAD_INLINE T largest_of(const T* x, int64_t width) {
  Vec<T> largest = set(-kInfinity<T>);
  each<T>(
      width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        largest = max(select(lanes, load(x + i, lanes), set(-kInfinity<T>)), largest);
      });
  return horizontal_max(largest);
}

// What is subtracted before exp: the largest, or 0 where that is -inf, so that exp(-inf - 0) = 0 and not NaN.
template <class T>
HANDGRAD_INLINE T offset_for(T largest) {
  return largest == -kInfinity<T> ? T(0) : largest;
}

// log(sum(exp(x))), computed with the largest element taken out, so that nothing overflows. -inf for a row of nothing but
// -inf, NaN for a row with NaN or +inf.
template <class T>
double log_sum_exp(const T* x, int64_t width) {
  const T largest = largest_of(x, width);
  const Vec<T> offset = set(offset_for(largest));
  Sum<T> total;
  each<T>(
      width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        total.add(select(lanes, exp(load(x + i, lanes) - offset), set(T(0))));
      });
  const double sum = total.total();
  return static_cast<double>(largest) + (sum > 0 ? portable_log(sum) : sum);
}

}  // namespace handgrad::kernels::HANDGRAD_TARGET
