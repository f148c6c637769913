// Activations: each element by itself.
//
//   tanh      y = tanh(x)                 dx = dy * (1 - y^2)                     saved: y
//   sigmoid   y = 1 / (1 + exp(-x))       dx = dy * y * (1 - y)                   saved: y
//   relu      y = max(x, 0)               dx = dy where y > 0, else 0             saved: y
//   silu      y = x * s, s = sigmoid(x)   dx = dy * s * (1 + x * (1 - s))         saved: x
//   gelu      y = x * P                   dx = dy * (P + x * P')                  saved: x
//
// GELU (Hendrycks and Gimpel, 2016): P is the normal distribution function. exact: P = erfc(-x / sqrt(2)) / 2
// and P' = exp(-x^2 / 2) / sqrt(2 pi). tanh, GPT-2's: P = (1 + t) / 2 with t = tanh(u), u = sqrt(2 / pi) (x +
// 0.044715 x^3), and P' = (1 - t^2) / 2 * sqrt(2 / pi) (1 + 3 * 0.044715 x^2).
#include <cmath>

#include "handgrad/core/checks.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/each.h"

namespace handgrad {
namespace {

constexpr double kCheap = 0.4, kDear = 8;              // nanoseconds an element
constexpr double kRootTwoOverPi = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kCube = 0.044715;
constexpr double kRootHalf = 0.7071067811865476;
constexpr double kOneOverRootTwoPi = 0.3989422804014327;

template <class T>
T sigmoid_of(T x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
T tanh_of_gelu(T x) {
  return std::tanh(T(kRootTwoOverPi) * (x + T(kCube) * (x * x * x)));
}

template <class T>
T slope_of_gelu_tanh(T x) {
  const T t = tanh_of_gelu(x);
  const T rest = 1 - t * t;  // exactly 0 where x^2 may overflow
  const T bend = rest == 0 ? T(0) : x * rest * T(kRootTwoOverPi) * (1 + T(3 * kCube) * (x * x));
  return (1 + t + bend) / 2;
}

template <class T>
T slope_of_gelu_exact(T x) {
  return std::erfc(-x * T(kRootHalf)) / 2 + x * (T(kOneOverRootTwoPi) * std::exp(-x * x / 2));
}

void tanh_backward(const Node& node, const Array& dy, GradSink& sink) {
  chain_each(sink, dy, node.saved("y"), kCheap, [](auto g, auto y) { return g * (1 - y * y); });
}

void sigmoid_backward(const Node& node, const Array& dy, GradSink& sink) {
  chain_each(sink, dy, node.saved("y"), kCheap, [](auto g, auto y) { return g * y * (1 - y); });
}

void relu_backward(const Node& node, const Array& dy, GradSink& sink) {
  chain_each(sink, dy, node.saved("y"), kCheap, [](auto g, auto y) { return y == 0 ? decltype(g)(0) : g; });
}

void silu_backward(const Node& node, const Array& dy, GradSink& sink) {
  chain_each(sink, dy, node.saved("x"), kDear, [](auto g, auto x) {
    const auto s = sigmoid_of(x);
    return g * (s * (1 + x * (1 - s)));
  });
}

void gelu_tanh_backward(const Node& node, const Array& dy, GradSink& sink) {
  chain_each(sink, dy, node.saved("x"), kDear, [](auto g, auto x) { return g * slope_of_gelu_tanh(x); });
}

void gelu_exact_backward(const Node& node, const Array& dy, GradSink& sink) {
  chain_each(sink, dy, node.saved("x"), kDear, [](auto g, auto x) { return g * slope_of_gelu_exact(x); });
}

}  // namespace

Tensor tanh(const Tensor& x) {
  checks::common_type("tanh", {{"x", x}});
  const Array y = map_each(x.array(), kDear, [](auto v) { return std::tanh(v); });
  return record("tanh", y, {x}, {{"y", y}}, tanh_backward);
}

Tensor sigmoid(const Tensor& x) {
  checks::common_type("sigmoid", {{"x", x}});
  const Array y = map_each(x.array(), kDear, [](auto v) { return sigmoid_of(v); });
  return record("sigmoid", y, {x}, {{"y", y}}, sigmoid_backward);
}

Tensor relu(const Tensor& x) {
  checks::common_type("relu", {{"x", x}});
  const Array y = map_each(x.array(), kCheap, [](auto v) { return v <= 0 ? decltype(v)(0) : v; });
  return record("relu", y, {x}, {{"y", y}}, relu_backward);
}

Tensor silu(const Tensor& x) {
  checks::common_type("silu", {{"x", x}});
  const Array y = map_each(x.array(), kDear, [](auto v) { return v * sigmoid_of(v); });
  return record("silu", y, {x}, {{"x", x.array()}}, silu_backward);
}

Tensor gelu(const Tensor& x, Gelu form) {
  checks::common_type("gelu", {{"x", x}});
  if (form == Gelu::exact) {
    const Array y =
        map_each(x.array(), kDear, [](auto v) { return v * (std::erfc(-v * decltype(v)(kRootHalf)) / 2); });
    return record("gelu_exact", y, {x}, {{"x", x.array()}}, gelu_exact_backward);
  }
  const Array y = map_each(x.array(), kDear, [](auto v) { return v * ((1 + tanh_of_gelu(v)) / 2); });
  return record("gelu", y, {x}, {{"x", x.array()}}, gelu_tanh_backward);
}

}  // namespace handgrad
