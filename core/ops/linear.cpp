// The linear map, and several of one x in one output.
//
//   y = x W^T + b     x [..., in]   W [out, in]   b [out]   y [..., out]
//   dx = dy W         dW = dy^T x   db = sum of dy over all rows
//
// linear_fused writes x W1^T + b1, x W2^T + b2, ... into column blocks of one y [..., out1 + out2 + ...]; each number
// has the bits that linear gives it. dx is the sum over the maps, in their order.
// Saved: x for the weights' gradients, the weights for dx. dW adds up in place, straight from the product.
#include "handgrad/core/broadcast.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/matmul.h"
#include "handgrad/core/ops/rows.h"

namespace handgrad {
namespace {

constexpr int kMostMaps = Shape::kMaxRank;  // their widths are kept in a Shape
constexpr const char* kWeightNames[kMostMaps] = {"weight 0", "weight 1", "weight 2",
                                                 "weight 3", "weight 4", "weight 5"};

// ---- One map, whose output is the columns from `column` on of y, or of dy

template <class T>
void forward(const Array& x, const Array& weight, const Array& bias, Array& y, std::int64_t column) {
  const std::int64_t out = weight.shape()[0], in = weight.shape()[1];
  Matmul<T> map = product<T>(rows_of(x), out, in, {x.data<T>(), in}, {weight.data<T>(), in, true},
                             y.mutable_data<T>() + column, y.shape().last());
  map.bias = bias.data<T>();
  matmul(map);
}

template <class T>
void input_gradient(const Array& dy, const Array& weight, std::int64_t column, Array& dx, bool add) {
  const std::int64_t out = weight.shape()[0], in = weight.shape()[1];
  Matmul<T> map = product<T>(rows_of(dy), in, out, {dy.data<T>() + column, dy.shape().last()},
                             {weight.data<T>(), in}, dx.mutable_data<T>(), in);
  map.accumulate = add;
  matmul(map);
}

template <class T>
void weight_gradient(const Array& dy, const Array& x, std::int64_t column, GradSink::Target into) {
  const std::int64_t out = into.array.shape()[0], in = into.array.shape()[1];
  Matmul<T> map = product<T>(out, in, rows_of(x), {dy.data<T>() + column, dy.shape().last(), true},
                             {x.data<T>(), in}, into.array.mutable_data<T>(), in);
  map.accumulate = into.add;
  matmul(map);
}

// ---- Checks

using checks::Named;

void check_map(const char* op, Named x, Named weight, Named bias) {
  const bool has_bias = bias.tensor.defined();
  has_bias ? checks::common_type(op, {x, weight, bias}) : checks::common_type(op, {x, weight});
  const auto fail = [&](const std::string& message) {
    throw ShapeError(op, message, has_bias ? checks::shapes({x, weight, bias}) : checks::shapes({x, weight}));
  };
  if (x.tensor.rank() == 0) fail("x must have at least one dimension, got a scalar");
  if (weight.tensor.rank() != 2)
    fail(std::string(weight.name) + " must have shape [out, in], got " + weight.tensor.shape().text());
  if (weight.tensor.size(1) != x.tensor.size(kLast))
    fail("inner dimensions must agree: x has " + std::to_string(x.tensor.size(kLast)) + " features, " +
         weight.name + " [out, in] takes " + std::to_string(weight.tensor.size(1)));
  if (has_bias && bias.tensor.shape() != Shape{weight.tensor.size(0)})
    fail(std::string(bias.name) + " must have shape [" + std::to_string(weight.tensor.size(0)) +
         "], one number for "
         "each row of " +
         weight.name + ", got " + bias.tensor.shape().text());
}

// ---- The gradients. Inputs: x, the weights, the biases.

/// `names`: under which each weight is saved.
void backward(const Node& node, const Array& dy, GradSink& sink, const Shape& widths,
              const char* const* names) {
  const int maps = widths.rank();
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (sink.wants(0)) {
      const GradSink::Target into = sink.into(0);
      std::int64_t column = 0;
      for (int i = 0; i < maps; column += widths[i++])
        input_gradient<T>(dy, node.saved(names[i]), column, into.array, into.add || i > 0);
    }
    std::int64_t column = 0;
    for (int i = 0; i < maps; column += widths[i++]) {
      if (sink.wants(1 + i)) weight_gradient<T>(dy, node.saved("x"), column, sink.into(1 + i));
      if (sink.wants(1 + maps + i)) sum_rows(dy, column, sink.into(1 + maps + i));
    }
  });
}

void linear_backward(const Node& node, const Array& dy, GradSink& sink) {
  const char* const name = "weight";
  backward(node, dy, sink, {dy.shape().last()}, &name);
}

void linear_fused_backward(const Node& node, const Array& dy, GradSink& sink) {
  backward(node, dy, sink, node.list("widths"), kWeightNames);
}

// ---- linear_fused

Shape checked_widths(const Tensor& x, const std::vector<Tensor>& weights, const std::vector<Tensor>& biases) {
  const char* op = "linear_fused";
  if (weights.empty() || weights.size() > kMostMaps)
    checks::throw_shape(op,
                        "weights must be 1 to " + std::to_string(kMostMaps) + " matrices, got " +
                            std::to_string(weights.size()),
                        {{"x", x}});
  if (!biases.empty() && biases.size() != weights.size())
    checks::throw_shape(op,
                        "biases must be none or one for each of the " + std::to_string(weights.size()) +
                            " weights, got " + std::to_string(biases.size()),
                        {{"x", x}});
  const Tensor none;
  Shape widths;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    check_map(op, {"x", x}, {kWeightNames[i], weights[i]}, {"its bias", biases.empty() ? none : biases[i]});
    widths.push_back(weights[i].size(0));
  }
  return widths;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_map("linear", {"x", x}, {"weight", weight}, {"bias", bias});
  Array y(x.shape().with_last(weight.size(0)), x.dtype());
  dispatch(x.dtype(),
           [&](auto zero) { forward<decltype(zero)>(x.array(), weight.array(), bias.array(), y, 0); });
  return record("linear", std::move(y), {x, weight, bias},
                {{"x", x.array(), weight.needs_grad()}, {"weight", weight.array(), x.needs_grad()}},
                linear_backward);
}

Tensor linear_fused(const Tensor& x, const std::vector<Tensor>& weights, const std::vector<Tensor>& biases) {
  const Shape widths = checked_widths(x, weights, biases);
  const Tensor none;
  std::int64_t width = 0;
  for (const std::int64_t w : widths) width += w;
  Array y(x.shape().with_last(width), x.dtype());

  Input inputs[1 + 2 * kMostMaps] = {x,    none, none, none, none, none, none,
                                     none, none, none, none, none, none};
  Save saves[1 + kMostMaps] = {{"x", x.array(), false}, {"", y, false}, {"", y, false}, {"", y, false},
                               {"", y, false},          {"", y, false}, {"", y, false}};
  std::int64_t column = 0;
  const std::size_t maps = weights.size();
  for (std::size_t i = 0; i < maps; ++i) {
    const Tensor& bias = biases.empty() ? none : biases[i];
    dispatch(x.dtype(), [&](auto zero) {
      forward<decltype(zero)>(x.array(), weights[i].array(), bias.array(), y, column);
    });
    column += widths[static_cast<int>(i)];
    inputs[1 + i] = weights[i];
    inputs[1 + maps + i] = bias;
    saves[0].wanted = saves[0].wanted || weights[i].needs_grad();
    saves[1 + i] = {kWeightNames[i], weights[i].array(), x.needs_grad()};
  }
  return record("linear_fused", std::move(y), {inputs, 1 + 2 * maps}, {saves, 1 + maps},
                linear_fused_backward, {{"widths", widths}});
}

}  // namespace handgrad
