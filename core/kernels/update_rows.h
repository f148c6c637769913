// Kernels of an optimizer's step: one pass over a parameter, its gradient and its moments.
#pragma once

#include "handgrad/core/kernels/targets.h"

namespace handgrad::kernels {

/// g = gradient_scale * gradient + l2 * value
/// momentum = first ? g : momentum_factor * momentum + gradient_factor * g
/// value -= lr * (g | momentum | g + momentum_factor * momentum)
template <class T>
struct SgdFactors {
  T lr;
  T gradient_scale;
  T l2;               // weight decay; 0: none
  T momentum_factor;  // 0: plain, `momentum` may be null
  T gradient_factor;  // 1 - dampening
  bool nesterov;
  bool first;  // no momentum yet (zeros): it becomes g
};

/// g = gradient_scale * gradient + l2 * value
/// m += (g - m) * one_minus_beta1
/// v = beta2 * v + one_minus_beta2 * g * g
/// value = keep * value - step_size * m / (sqrt(v) * root_correction + eps)
template <class T>
struct AdamFactors {
  T gradient_scale;
  T l2;    // coupled weight decay (adam); 0: none
  T keep;  // 1 - lr * decoupled weight decay (adamw); 1: none
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T step_size;        // lr / (1 - beta1^t)
  T root_correction;  // 1 / sqrt(1 - beta2^t)
  T eps;
};

}  // namespace handgrad::kernels

/// sgd, adam: one step for n numbers. sum_of_squares: x[i] * x[i], squared and added in double, for the norm of a
/// gradient.
HANDGRAD_EACH_TARGET(template <class T>
                     void sgd(T* value, T* momentum, const T* gradient, int64_t n, const SgdFactors<T>&);
                     template <class T>
                     void adam(T* value, T* m, T* v, const T* gradient, int64_t n, const AdamFactors<T>&);
                     template <class T> double sum_of_squares(const T* x, int64_t n);)
