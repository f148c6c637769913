// Sum, difference, product and quotient, with broadcasting, and the same with a plain number on one side.
//
//   y = a + b    da = dy          db = dy
//   y = a - b    da = dy          db = -dy
//   y = a * b    da = dy * b      db = dy * a
//   y = a / b    da = dy / b      db = -(dy / b) * y
//
// An operand that was repeated gets the sum over its repetitions. Where dy is 0 every gradient is 0, even if
// a factor is infinite or NaN: a branch that where() has not taken stays silent. Saved: for a product the
// factor of each wanted gradient; for a quotient b, and y if b wants one. Sums save nothing.
#include "handgrad/core/broadcast.h"
#include "handgrad/core/kernels/table.h"
#include "handgrad/core/ops.h"

namespace handgrad {
namespace {

constexpr std::int64_t kGrain = grain_for(0.3);

struct Add {
  template <class T>
  static kernels::Binary<T> kernel() {
    return kernels::table<T>().elementwise.add;
  }
};
struct Sub {
  template <class T>
  static kernels::Binary<T> kernel() {
    return kernels::table<T>().elementwise.sub;
  }
};
struct Mul {
  template <class T>
  static kernels::Binary<T> kernel() {
    return kernels::table<T>().elementwise.mul;
  }
};
struct Div {
  template <class T>
  static kernels::Binary<T> kernel() {
    return kernels::table<T>().elementwise.div;
  }
};
struct ChainMul {  // 0 where the first operand, an upstream gradient, is 0
  template <class T>
  static kernels::Binary<T> kernel() {
    return kernels::table<T>().elementwise.chain_mul;
  }
};
struct ChainDiv {
  template <class T>
  static kernels::Binary<T> kernel() {
    return kernels::table<T>().elementwise.chain_div;
  }
};

// y = a op b, or += when `add` is set; y has the shape that a and b broadcast to.
template <class Op, class T>
void compute(Array& y, const Array& a, const Array& b, bool add) {
  const auto kernel = Op::template kernel<T>();
  T* to = y.mutable_data<T>();
  const T* from_a = a.data<T>();
  const T* from_b = b.data<T>();
  if (a.shape() == b.shape()) {
    const std::int64_t n = y.numel();
    if (n <= kGrain) return kernel(to, {from_a, n, 1}, {from_b, n, 1}, 1, n, add);
    return parallel_ranges(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t count = end - begin;
      kernel(to + begin, {from_a + begin, count, 1}, {from_b + begin, count, 1}, 1, count, add);
    });
  }
  const Loops<2> loops = loops_over<2>(y.shape(), {&a.shape(), &b.shape()});
  for_each_matrix(
      loops, kGrain, [&](std::int64_t at, const auto& offsets, std::int64_t rows, std::int64_t columns) {
        kernel(to + at, {from_a + offsets[0], loops.row_step(0), loops.column_step(0)},
               {from_b + offsets[1], loops.row_step(1), loops.column_step(1)}, rows, columns, add);
      });
}

template <class Op>
void compute(Array& y, const Array& a, const Array& b, bool add = false) {
  dispatch(y.dtype(), [&](auto zero) { compute<Op, decltype(zero)>(y, a, b, add); });
}

template <class Op>
Array binary(const char* op, const Tensor& a, const Tensor& b) {
  const DType type = checks::common_type(op, {{"a", a}, {"b", b}});
  Array y = a.shape() == b.shape() ? Array::like(a.array())
                                   : Array(broadcast_shape(op, {{"a", a}, {"b", b}}), type);
  compute<Op>(y, a.array(), b.array());
  return y;
}

// y = x op number, or number op x, or += when `add` is set.
template <class Op, bool NumberFirst = false>
void compute_with(Array& y, const Array& x, double number, bool add = false) {
  dispatch(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto kernel = Op::template kernel<T>();
    T* to = y.mutable_data<T>();
    const T* from = x.data<T>();
    const T value = static_cast<T>(number);
    parallel_ranges(y.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t count = end - begin;
      const kernels::Operand<T> operand = {from + begin, count, 1};
      const kernels::Operand<T> constant = {&value, 0, 0};
      kernel(to + begin, NumberFirst ? constant : operand, NumberFirst ? operand : constant, 1, count, add);
    });
  });
}

template <class Op, bool NumberFirst = false>
Array with_number(const char* op, const Tensor& x, double number) {
  checks::common_type(op, {{"x", x}});
  Array y = Array::like(x.array());
  compute_with<Op, NumberFirst>(y, x.array(), number);
  return y;
}

bool wants(const Tensor& x) { return x.needs_grad(); }

void add_backward(const Node& node, const Array& dy, GradSink& sink) {
  if (sink.wants(0)) give(sink, node, 0, dy);
  if (sink.wants(1)) give(sink, node, 1, dy);
}

void pass_backward(const Node& /*node*/, const Array& dy, GradSink& sink) { sink.move(0, dy); }

void scaled_backward(GradSink& sink, const Node& node, int i, const Array& dy, double factor) {
  give_filled(sink, node, i, dy, [&](Array& dx, bool add) { compute_with<ChainMul>(dx, dy, factor, add); });
}

void neg_backward(const Node& node, const Array& dy, GradSink& sink) {
  scaled_backward(sink, node, 0, dy, -1);
}

void sub_backward(const Node& node, const Array& dy, GradSink& sink) {
  if (sink.wants(0)) give(sink, node, 0, dy);
  if (sink.wants(1)) scaled_backward(sink, node, 1, dy, -1);
}

void mul_backward(const Node& node, const Array& dy, GradSink& sink) {
  for (int i = 0; i < 2; ++i) {
    if (!sink.wants(i)) continue;
    const Array& factor = node.saved(i == 0 ? "b" : "a");
    give_filled(sink, node, i, dy, [&](Array& dx, bool add) { compute<ChainMul>(dx, dy, factor, add); });
  }
}

void mul_number_backward(const Node& node, const Array& dy, GradSink& sink) {
  scaled_backward(sink, node, 0, dy, node.number("factor"));
}

// -(dy / b) * y, the gradient of a quotient's divisor, for input `i`.
void divisor_backward(GradSink& sink, const Node& node, int i, const Array& dy) {
  Array part = Array::like(dy);
  compute<ChainDiv>(part, dy, node.saved("b"));
  compute_with<Mul>(part, part, -1);
  give_filled(sink, node, i, dy,
              [&](Array& db, bool add) { compute<ChainMul>(db, part, node.saved("y"), add); });
}

void div_backward(const Node& node, const Array& dy, GradSink& sink) {
  if (sink.wants(0)) {
    const Array& b = node.saved("b");
    give_filled(sink, node, 0, dy, [&](Array& da, bool add) { compute<ChainDiv>(da, dy, b, add); });
  }
  if (sink.wants(1)) divisor_backward(sink, node, 1, dy);
}

void div_number_backward(const Node& node, const Array& dy, GradSink& sink) {
  const GradSink::Target into = sink.into(0);
  compute_with<ChainDiv>(into.array, dy, node.number("divisor"), into.add);
}

void number_div_backward(const Node& node, const Array& dy, GradSink& sink) {
  divisor_backward(sink, node, 0, dy);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  return record("add", binary<Add>("add", a, b), {a, b}, {}, add_backward);
}

Tensor sub(const Tensor& a, const Tensor& b) {
  return record("sub", binary<Sub>("sub", a, b), {a, b}, {}, sub_backward);
}

Tensor mul(const Tensor& a, const Tensor& b) {
  return record("mul", binary<Mul>("mul", a, b), {a, b},
                {{"a", a.array(), wants(b)}, {"b", b.array(), wants(a)}}, mul_backward);
}

Tensor div(const Tensor& a, const Tensor& b) {
  const Array y = binary<Div>("div", a, b);
  return record("div", y, {a, b}, {{"b", b.array()}, {"y", y, wants(b)}}, div_backward);
}

Tensor add(const Tensor& a, double b) {
  return record("add", with_number<Add>("add", a, b), {a}, {}, pass_backward);
}
Tensor add(double a, const Tensor& b) { return add(b, a); }

Tensor sub(const Tensor& a, double b) {
  return record("sub", with_number<Sub>("sub", a, b), {a}, {}, pass_backward);
}
Tensor sub(double a, const Tensor& b) {
  return record("sub", with_number<Sub, true>("sub", b, a), {b}, {}, neg_backward);
}

Tensor mul(const Tensor& a, double b) {
  return record("mul", with_number<Mul>("mul", a, b), {a}, {}, mul_number_backward, {{"factor", b}});
}
Tensor mul(double a, const Tensor& b) { return mul(b, a); }

Tensor div(const Tensor& a, double b) {
  return record("div", with_number<Div>("div", a, b), {a}, {}, div_number_backward, {{"divisor", b}});
}
Tensor div(double a, const Tensor& b) {
  const Array y = with_number<Div, true>("div", b, a);
  return record("div", y, {b}, {{"b", b.array()}, {"y", y}}, number_div_backward);
}

Tensor neg(const Tensor& x) { return record("neg", with_number<Mul>("neg", x, -1), {x}, {}, neg_backward); }

}  // namespace handgrad
