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

// One operand of a choice: an array, or one number for all places.
struct Choice {
  const Array* array = nullptr;
  double number = 0;
  const Shape& shape() const { return array != nullptr ? array->shape() : kScalar; }
  static constexpr Shape kScalar{};
};

// y = mask ? a : b, or += when `add` is set; all broadcast to y's shape.
template <class T>
void choose(Array& y, const Array& mask, const Choice& a, const Choice& b, bool add) {
  const auto walk = walk_over<3>(y.shape(), {&mask.shape(), &a.shape(), &b.shape()});
  const T number_a = static_cast<T>(a.number), number_b = static_cast<T>(b.number);
  const T* from_mask = mask.data<T>();
  const T* from_a = a.array != nullptr ? a.array->data<T>() : &number_a;
  const T* from_b = b.array != nullptr ? b.array->data<T>() : &number_b;
  T* to = y.mutable_data<T>();
  const std::int64_t step_m = walk.column_step(0), step_a = walk.column_step(1), step_b = walk.column_step(2);
  for_each_row(walk, kGrain, [&](std::int64_t at, const auto& start, std::int64_t columns) {
    const T *m = from_mask + start[0], *p = from_a + start[1], *q = from_b + start[2];
    for (std::int64_t j = 0; j < columns; ++j) {
      const T chosen = m[j * step_m] != 0 ? p[j * step_a] : q[j * step_b];
      to[at + j] = add ? to[at + j] + chosen : chosen;
    }
  });
}

void choose(Array& y, const Array& mask, const Choice& a, const Choice& b, bool add = false) {
  dispatch(y.dtype(), [&](auto zero) { choose<decltype(zero)>(y, mask, a, b, add); });
}

void masked_fill_backward(const Node& node, const Array& dy, GradSink& sink) {
  const GradSink::Target into = sink.into(0);
  choose(into.array, node.saved("mask"), {}, {&dy}, into.add);
}

void where_backward(const Node& node, const Array& dy, GradSink& sink) {
  const Array& condition = node.saved("condition");
  if (sink.wants(0))
    compute_gradient(sink, node, 0, dy, [&](Array& da, bool add) { choose(da, condition, {&dy}, {}, add); });
  if (sink.wants(1))
    compute_gradient(sink, node, 1, dy, [&](Array& db, bool add) { choose(db, condition, {}, {&dy}, add); });
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
  choose(y, mask.array(), {nullptr, value}, {&x.array()});
  return record("masked_fill", y, {x}, {{"mask", mask.array()}}, masked_fill_backward);
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const DType type = checks::common_type("where", {{"condition", condition}, {"a", a}, {"b", b}});
  Array y(broadcast_shape("where", {{"condition", condition}, {"a", a}, {"b", b}}), type);
  choose(y, condition.array(), {&a.array()}, {&b.array()});
  return record("where", y, {a, b}, {{"condition", condition.array()}}, where_backward);
}

}  // namespace handgrad
