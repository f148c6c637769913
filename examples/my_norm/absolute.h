// A custom operation with its derivative.
//
//   y = |x|    dx = dy * sign(x), and 0 at 0    saved: x
#pragma once

#include <handgrad/core/autograd.h>

inline void absolute_backward(const handgrad::Node& node, const handgrad::Array& dy,
                              handgrad::GradSink& sink) {
  const handgrad::Array& x = node.saved("x");
  const handgrad::GradSink::Target dx = sink.into(0);
  handgrad::dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.data<T>();
    const T* upstream = dy.data<T>();
    T* to = dx.array.mutable_data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const T gradient = from[i] > 0 ? upstream[i] : from[i] < 0 ? -upstream[i] : 0;
      to[i] = dx.add ? to[i] + gradient : gradient;
    }
  });
}

/// Elementwise |x|.
inline handgrad::Tensor absolute(const handgrad::Tensor& x) {
  handgrad::Array y = handgrad::Array::like(x.array());
  handgrad::dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.array().data<T>();
    T* to = y.mutable_data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] < 0 ? -from[i] : from[i];
  });
  return record("absolute", y, {x}, {{"x", x.array()}}, absolute_backward);
}
