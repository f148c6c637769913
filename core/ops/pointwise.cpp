// Powers, roots, exponential and logarithm of each element.
//
//   y = x^p            dx = dy * p * x^(p - 1), 0 for p = 0       saved: x
//   y = b^e            db = dy * e * b^(e - 1), 0 for e = 0       saved: base, exponent, y
//                      de = dy * y * log(b), 0 for b = 0, e >= 0
//   y = x * x          dx = dy * 2 x                              saved: x
//   y = sqrt(x)        dx = dy / (2 y), 0 for y = 0               saved: y
//   y = 1 / sqrt(x)    dx = -dy / 2 * y^3                         saved: y
//   y = exp(x)         dx = dy * y                                saved: y
//   y = log(x)         dx = dy / x                                saved: x
//
// Where dy is 0 the gradient is 0, even if the derivative is infinite. sqrt's derivative at 0 is 0 by choice,
// so that a norm of zeros trains; pow's with p < 1 stays infinite.
#include <cmath>

#include "handgrad/core/broadcast.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/each.h"

namespace handgrad {
namespace {

constexpr double kCheap = 0.4, kDear = 5, kPower = 20;  // nanoseconds an element

void pow_number_backward(const Node& node, const Array& dy, GradSink& sink) {
  const double p = node.number("exponent");
  const Array& x = node.saved("x");
  if (p == 0) return chain_each(sink, dy, x, kCheap, [](auto g, auto) { return decltype(g)(0); });
  if (p == 2) return chain_each(sink, dy, x, kCheap, [](auto g, auto v) { return g * 2 * v; });
  if (p == 3) return chain_each(sink, dy, x, kCheap, [](auto g, auto v) { return g * 3 * (v * v); });
  chain_each(sink, dy, x, kPower, [p](auto g, auto v) {
    using T = decltype(g);
    return g * static_cast<T>(p) * std::pow(v, static_cast<T>(p - 1));
  });
}

// to[i] = f(dy[i], base[i], exponent[i]), or += when `add` is set, base and exponent repeated to dy's shape.
template <class Function>
void chain_pair(Array& to, const Array& dy, const Node& node, bool add, const Function& f) {
  const Array& base = node.saved("base");
  const Array& exponent = node.saved("exponent");
  const auto loops = loops_over<2>(dy.shape(), {&base.shape(), &exponent.shape()});
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* out = to.mutable_data<T>();
    for_each_matrix(loops, grain_for(kPower),
                    [&](std::int64_t at, const auto& start, std::int64_t rows, auto columns) {
                      for (std::int64_t i = 0; i < rows; ++i) {
                        const T* b = base.data<T>() + start[0] + i * loops.row_step(0);
                        const T* e = exponent.data<T>() + start[1] + i * loops.row_step(1);
                        for (std::int64_t j = 0; j < columns; ++j) {
                          const std::int64_t k = at + i * columns + j;
                          const T g = dy.data<T>()[k];
                          const T gradient =
                              g == 0 ? T(0) : f(g, b[j * loops.column_step(0)], e[j * loops.column_step(1)]);
                          out[k] = add ? out[k] + gradient : gradient;
                        }
                      }
                    });
  });
}

void pow_backward(const Node& node, const Array& dy, GradSink& sink) {
  if (sink.wants(0)) {
    give_filled(sink, node, 0, dy, [&](Array& db, bool add) {
      chain_pair(db, dy, node, add,
                 [](auto g, auto b, auto e) { return e == 0 ? decltype(g)(0) : g * e * std::pow(b, e - 1); });
    });
  }
  if (sink.wants(1)) {
    give_filled(sink, node, 1, dy, [&](Array& de, bool add) {
      chain_pair(de, dy, node, add, [](auto g, auto b, auto e) {
        return b == 0 && e >= 0 ? decltype(g)(0) : g * std::pow(b, e) * std::log(b);
      });
    });
  }
}

void square_backward(const Node& node, const Array& dy, GradSink& sink) {
  chain_each(sink, dy, node.saved("x"), kCheap, [](auto g, auto x) { return g * 2 * x; });
}

void sqrt_backward(const Node& node, const Array& dy, GradSink& sink) {
  chain_each(sink, dy, node.saved("y"), kCheap,
             [](auto g, auto y) { return y == 0 ? decltype(g)(0) : g / (2 * y); });
}

void rsqrt_backward(const Node& node, const Array& dy, GradSink& sink) {
  chain_each(sink, dy, node.saved("y"), kCheap,
             [](auto g, auto y) { return g * decltype(g)(-0.5) * (y * y * y); });
}

void exp_backward(const Node& node, const Array& dy, GradSink& sink) {
  chain_each(sink, dy, node.saved("y"), kCheap, [](auto g, auto y) { return g * y; });
}

void log_backward(const Node& node, const Array& dy, GradSink& sink) {
  chain_each(sink, dy, node.saved("x"), kCheap, [](auto g, auto x) { return g / x; });
}

Array power(const Array& x, double p) {
  if (p == 2) return map_each(x, kCheap, [](auto v) { return v * v; });
  if (p == 3) return map_each(x, kCheap, [](auto v) { return v * v * v; });
  return map_each(x, kPower, [p](auto v) { return std::pow(v, static_cast<decltype(v)>(p)); });
}

}  // namespace

Tensor pow(const Tensor& x, double exponent) {
  checks::common_type("pow", {{"x", x}});
  return record("pow", power(x.array(), exponent), {x}, {{"x", x.array()}}, pow_number_backward,
                {{"exponent", exponent}});
}

Tensor pow(const Tensor& base, const Tensor& exponent) {
  const DType type = checks::common_type("pow", {{"base", base}, {"exponent", exponent}});
  Array y(broadcast_shape("pow", {{"base", base}, {"exponent", exponent}}), type);
  const auto loops = loops_over<2>(y.shape(), {&base.shape(), &exponent.shape()});
  dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    T* out = y.mutable_data<T>();
    for_each_matrix(
        loops, grain_for(kPower), [&](std::int64_t at, const auto& start, std::int64_t rows, auto columns) {
          for (std::int64_t i = 0; i < rows; ++i) {
            const T* b = base.array().data<T>() + start[0] + i * loops.row_step(0);
            const T* e = exponent.array().data<T>() + start[1] + i * loops.row_step(1);
            for (std::int64_t j = 0; j < columns; ++j)
              out[at + i * columns + j] = std::pow(b[j * loops.column_step(0)], e[j * loops.column_step(1)]);
          }
        });
  });
  return record("pow", y, {base, exponent}, {{"base", base.array()}, {"exponent", exponent.array()}},
                pow_backward);
}

Tensor square(const Tensor& x) {
  checks::common_type("square", {{"x", x}});
  return record("square", power(x.array(), 2), {x}, {{"x", x.array()}}, square_backward);
}

Tensor sqrt(const Tensor& x) {
  checks::common_type("sqrt", {{"x", x}});
  const Array y = map_each(x.array(), kCheap, [](auto v) { return std::sqrt(v); });
  return record("sqrt", y, {x}, {{"y", y}}, sqrt_backward);
}

Tensor rsqrt(const Tensor& x) {
  checks::common_type("rsqrt", {{"x", x}});
  const Array y = map_each(x.array(), kCheap, [](auto v) { return 1 / std::sqrt(v); });
  return record("rsqrt", y, {x}, {{"y", y}}, rsqrt_backward);
}

Tensor exp(const Tensor& x) {
  checks::common_type("exp", {{"x", x}});
  const Array y = map_each(x.array(), kDear, [](auto v) { return std::exp(v); });
  return record("exp", y, {x}, {{"y", y}}, exp_backward);
}

Tensor log(const Tensor& x) {
  checks::common_type("log", {{"x", x}});
  const Array y = map_each(x.array(), kDear, [](auto v) { return std::log(v); });
  return record("log", y, {x}, {{"x", x.array()}}, log_backward);
}

}  // namespace handgrad
