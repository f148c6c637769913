// Functions of one number and their derivatives: y = f(x) for each element.
#pragma once

#include <stdint.h>

namespace handgrad::kernels {

template <class T>
struct Function {
  /// y[i] = f(x[i]), i < n; y may be x
  void (*forward)(T* y, const T* x, int64_t n);
  /// dx[i] = dy[i] * f'(...), or += when `add` is set; 0 where dy[i] is 0, even if the derivative is infinite or NaN.
  /// `saved` is x or y, whichever the function's line says; dx may be dy when `add` is not set.
  void (*backward)(T* dx, const T* dy, const T* saved, int64_t n, bool add);
};

/// float: within 2 ulp for exp, log, tanh, sigmoid and erf; the same bits with AVX2 and AVX-512. double: the C
/// library's functions.
template <class T>
struct Pointwise {
  Function<T> square;   ///< f' = 2 x                                        saved: x
  Function<T> sqrt;     ///< f' = 1 / (2 y), 0 where y is 0                  saved: y
  Function<T> rsqrt;    ///< f' = -y^3 / 2                                   saved: y
  Function<T> exp;      ///< f' = y                                          saved: y
  Function<T> log;      ///< f' = 1 / x                                      saved: x
  Function<T> tanh;     ///< f' = 1 - y^2                                    saved: y
  Function<T> sigmoid;  ///< f' = y (1 - y)                                  saved: y
  Function<T> erf;      ///< f' = 2 / sqrt(pi) exp(-x^2)                     saved: x
  Function<T> relu;     ///< max(x, 0), NaN stays; f' = 1 where y > 0        saved: y
  Function<T> silu;     ///< x s, s = sigmoid(x); f' = s (1 + x (1 - s))     saved: x
  /// x P with P = (1 + tanh(u)) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3), computed as P = sigmoid(2 u), which is the
  /// same and loses no digits where x is negative; f' = P + x P'            saved: x
  Function<T> gelu_tanh;
  /// x P with P = (1 + erf(x / sqrt(2))) / 2; f' = P + x exp(-x^2 / 2) / sqrt(2 pi)   saved: x
  Function<T> gelu_exact;
};

}  // namespace handgrad::kernels
