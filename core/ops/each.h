// Loops for operations that take each element by itself.
#pragma once

#include "handgrad/core/autograd.h"
#include "handgrad/core/parallel.h"

namespace handgrad {

/// y[i] = f(x[i]). `nanoseconds`: about what one element costs.
template <class Function>
Array map_each(const Array& x, double nanoseconds, const Function& f) {
  Array y(x.shape(), x.dtype());
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    parallel_ranges(x.numel(), grain_for(nanoseconds), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
    });
  });
  return y;
}

/// dx[i] = f(dy[i], s[i]), or += when `add` is set; and 0 where dy is 0, even if the derivative there is
/// infinite.
template <class Function>
void chain_each(Array& dx, const Array& dy, const Array& s, bool add, double nanoseconds, const Function& f) {
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* upstream = dy.data<T>();
    const T* saved = s.data<T>();
    T* to = dx.mutable_data<T>();
    parallel_ranges(dy.numel(), grain_for(nanoseconds), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T gradient = upstream[i] == 0 ? T(0) : f(upstream[i], saved[i]);
        to[i] = add ? to[i] + gradient : gradient;
      }
    });
  });
}

/// The same for input 0 of a node whose output has its input's shape.
template <class Function>
void chain_each(GradSink& sink, const Array& dy, const Array& s, double nanoseconds, const Function& f) {
  const GradSink::Target into = sink.into(0);
  chain_each(into.array, dy, s, into.add, nanoseconds, f);
}

}  // namespace handgrad
