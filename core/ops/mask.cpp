// Choosing between numbers by a mask, which counts as set where it is not 0.
//
//   masked_fill   y = mask ? value : x     dx = mask ? 0 : dy                  saved: mask
//   where         y = condition ? a : b    da = condition ? dy : 0             saved: condition
//                                          db = condition ? 0 : dy
//
// The operand that was not chosen gets an exact 0. Masks have no gradient, and none is asked of them.
#include "handgrad/core/broadcast.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/walk.h"

namespace handgrad {
namespace {

constexpr std::int64_t kGrain = grain_for(0.6);

// y = mask ? a : b, or += when `add` is set; all broadcast to y's shape.
void choose(Array& y, const Array& mask, const Array& a, const Array& b, bool add = false) {
  dispatch(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = y.mutable_data<T>();
    const auto choose_element = [=](std::int64_t i, T condition, T p, T q) {
      const T chosen = condition != 0 ? p : q;
      to[i] = add ? to[i] + chosen : chosen;
    };
    for_each_element<T>(y.shape(), kGrain, choose_element, mask, a, b);
  });
}

void masked_fill_backward(const Node& node, const Array& dy, GradSink& sink) {
  const GradSink::Target into = sink.into(0);
  choose(into.array, node.saved("mask"), Array::zeros({}, dy.dtype()), dy, into.add);
}

void where_backward(const Node& node, const Array& dy, GradSink& sink) {
  const Array& condition = node.saved("condition");
  const Array none = Array::zeros({}, dy.dtype());
  if (sink.wants(0))
    compute_gradient(sink, node, 0, dy, [&](Array& da, bool add) { choose(da, condition, dy, none, add); });
  if (sink.wants(1))
    compute_gradient(sink, node, 1, dy, [&](Array& db, bool add) { choose(db, condition, none, dy, add); });
}

}  // namespace

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  const DType type = checks::common_type("masked_fill", {{"x", x}, {"mask", mask}});
  if (broadcast_shape("masked_fill", {{"x", x}, {"mask", mask}}) != x.shape())
    checks::throw_shape(
        "masked_fill",
        "mask must broadcast to the shape of x, " + x.shape().text() + ", got " + mask.shape().text(),
        {{"x", x}, {"mask", mask}});
  Array y(x.shape(), type);
  choose(y, mask.array(), Array::full({}, value, type), x.array());
  return record("masked_fill", y, {x}, {{"mask", mask.array()}}, masked_fill_backward);
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const DType type = checks::common_type("where", {{"condition", condition}, {"a", a}, {"b", b}});
  Array y(broadcast_shape("where", {{"condition", condition}, {"a", a}, {"b", b}}), type);
  choose(y, condition.array(), a.array(), b.array());
  return record("where", y, {a, b}, {{"condition", condition.array()}}, where_backward);
}

}  // namespace handgrad
