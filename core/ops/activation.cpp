// Activations: each element by itself.
//
//   tanh      y = tanh(x)                 dx = dy * (1 - y^2)                 saved: y
//   sigmoid   y = 1 / (1 + exp(-x))       dx = dy * y * (1 - y)               saved: y
//   relu      y = max(x, 0)               dx = dy where y > 0, else 0         saved: y
//   silu      y = x * s, s = sigmoid(x)   dx = dy * s * (1 + x * (1 - s))     saved: x
//   gelu      y = x * P                   dx = dy * (P + x * P')              saved: x
//
// GELU (Hendrycks and Gimpel, 2016): P is the normal distribution function. exact: P = (1 + erf(x / sqrt(2))) / 2 and
// P' = exp(-x^2 / 2) / sqrt(2 pi). tanh, GPT-2's: P = (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3).
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/function.h"

namespace handgrad {

Tensor tanh(const Tensor& x) {
  return function_of<Keep::y>("tanh", x, [](const auto& of) { return of.tanh; });
}

Tensor sigmoid(const Tensor& x) {
  return function_of<Keep::y>("sigmoid", x, [](const auto& of) { return of.sigmoid; });
}

Tensor relu(const Tensor& x) {
  return function_of<Keep::y>("relu", x, [](const auto& of) { return of.relu; });
}

Tensor silu(const Tensor& x) {
  return function_of<Keep::x>("silu", x, [](const auto& of) { return of.silu; });
}

Tensor gelu(const Tensor& x, Gelu form) {
  if (form == Gelu::exact)
    return function_of<Keep::x>("gelu_exact", x, [](const auto& of) { return of.gelu_exact; });
  return function_of<Keep::x>("gelu", x, [](const auto& of) { return of.gelu_tanh; });
}

}  // namespace handgrad
