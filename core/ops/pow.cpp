// Powers.
//
//   y = x^p            dx = dy * p * x^(p - 1), 0 for p = 0       saved: x
//   y = b^e            db = dy * e * b^(e - 1), 0 for e = 0       saved: base, exponent
//                      de = dy * b^e * log(b), 0 for b = 0, e >= 0
//
// Where dy is 0 the gradient is 0, even if the derivative is infinite. At 0 the derivative of x^p with p < 1 stays
// infinite.
#include <cmath>

#include "handgrad/core/broadcast.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/walk.h"

namespace handgrad {
namespace {

constexpr std::int64_t kGrain = grain_for(20);  // a power costs about 20 nanoseconds

// ---- x^p with one p for all

/// to[i] = f(from[i]), or, for a gradient, to[i] = dy[i] * f(from[i]) and 0 where dy[i] is 0.
template <class T, class Function>
void each(T* to, const T* dy, const T* from, std::int64_t n, bool add, const Function& f) {
  parallel_ranges(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T value = dy == nullptr ? f(from[i]) : dy[i] == 0 ? T(0) : dy[i] * f(from[i]);
      to[i] = add ? to[i] + value : value;
    }
  });
}

/// The powers that models use are products; the others are the C library's.
template <class T>
void power(T* to, const T* dy, const T* x, std::int64_t n, bool add, double p, double factor) {
  const T scale = static_cast<T>(factor), exponent = static_cast<T>(p);
  if (factor == 0) return each(to, dy, x, n, add, [](T) { return T(0); });
  if (p == 1) return each(to, dy, x, n, add, [=](T v) { return scale * v; });
  if (p == 2) return each(to, dy, x, n, add, [=](T v) { return scale * (v * v); });
  if (p == 3) return each(to, dy, x, n, add, [=](T v) { return scale * (v * v * v); });
  each(to, dy, x, n, add, [=](T v) { return scale * std::pow(v, exponent); });
}

void pow_number_backward(const Node& node, const Array& dy, GradSink& sink) {
  const double p = node.number("exponent");
  const Array& x = node.saved("x");
  const GradSink::Target into = sink.into(0);
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    power<T>(into.array.mutable_data<T>(), dy.data<T>(), x.data<T>(), dy.numel(), into.add, p - 1, p);
  });
}

// ---- b^e, broadcasting

/// dx = dy * slope(b, e), or += it.
template <class Slope>
void chain_pairs(Array& dx, const Array& dy, const Node& node, bool add, const Slope& slope) {
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = dx.mutable_data<T>();
    const T* upstream = dy.data<T>();
    const auto chain = [&](std::int64_t i, T b, T e) {
      const T value = upstream[i] == 0 ? T(0) : upstream[i] * slope(b, e);
      to[i] = add ? to[i] + value : value;
    };
    for_each_element<T>(dy.shape(), kGrain, chain, node.saved("base"), node.saved("exponent"));
  });
}

void pow_backward(const Node& node, const Array& dy, GradSink& sink) {
  if (sink.wants(0)) {
    compute_gradient(sink, node, 0, dy, [&](Array& db, bool add) {
      chain_pairs(db, dy, node, add, [](auto b, auto e) { return e == 0 ? e : e * std::pow(b, e - 1); });
    });
  }
  if (sink.wants(1)) {
    compute_gradient(sink, node, 1, dy, [&](Array& de, bool add) {
      chain_pairs(de, dy, node, add,
                  [](auto b, auto e) { return b == 0 && e >= 0 ? b : std::pow(b, e) * std::log(b); });
    });
  }
}

}  // namespace

Tensor pow(const Tensor& x, double exponent) {
  checks::common_type("pow", {{"x", x}});
  Array y = Array::like(x.array());
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    power<T>(y.mutable_data<T>(), nullptr, x.array().data<T>(), x.numel(), false, exponent, 1);
  });
  return record("pow", std::move(y), {x}, {{"x", x.array()}}, pow_number_backward, {{"exponent", exponent}});
}

Tensor pow(const Tensor& base, const Tensor& exponent) {
  const DType type = checks::common_type("pow", {{"base", base}, {"exponent", exponent}});
  Array y(broadcast_shape("pow", {{"base", base}, {"exponent", exponent}}), type);
  dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    T* to = y.mutable_data<T>();
    const auto power = [to](std::int64_t i, T b, T e) { to[i] = std::pow(b, e); };
    for_each_element<T>(y.shape(), kGrain, power, base.array(), exponent.array());
  });
  return record("pow", std::move(y), {base, exponent},
                {{"base", base.array()}, {"exponent", exponent.array()}}, pow_backward);
}

}  // namespace handgrad
