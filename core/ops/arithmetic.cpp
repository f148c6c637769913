// Sum, difference, product and quotient, with broadcasting, and the same with a plain number on one side.
//
//   y = a + b    da = dy          db = dy
//   y = a - b    da = dy          db = -dy
//   y = a * b    da = dy * b      db = dy * a
//   y = a / b    da = dy / b      db = -(dy / b) * y
//
// An operand that was repeated gets the sum over its repetitions. Where dy is 0 every gradient is 0, even if
// a factor is infinite or NaN: a branch that where() did not take has no effect. Saved: for a product the
// factor of each wanted gradient; for a quotient b, and y if b needs one. Sums save nothing.
#include "handgrad/core/kernels/binary.h"

#ifdef HANDGRAD_TARGET  // compiled once for each instruction set

#include "handgrad/core/kernels/vec.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

template <Binary kOp, class T>
HANDGRAD_INLINE Vec<T> apply(Vec<T> a, Vec<T> b) {
  if constexpr (kOp == Binary::add) return a + b;
  if constexpr (kOp == Binary::sub) return a - b;
  if constexpr (kOp == Binary::mul) return a * b;
  if constexpr (kOp == Binary::div) return a / b;
  const Vec<T> zero = set(T(0));
  if constexpr (kOp == Binary::chain_mul) return select(equal(a, zero), zero, a * b);
  if constexpr (kOp == Binary::chain_div) return select(equal(a, zero), zero, a / b);
}

// One row. A and B: whether that operand moves along the row, or one element serves all of it.
template <Binary kOp, bool A, bool B, class T>
HANDGRAD_INLINE void binary_row(T* y, const T* a, const T* b, int64_t n, bool add) {
  const Vec<T> first_a = set(a[0]);
  const Vec<T> first_b = set(b[0]);
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        Vec<T> va = first_a;
        Vec<T> vb = first_b;
        if constexpr (A) va = load(a + i, lanes);
        if constexpr (B) vb = load(b + i, lanes);
        const Vec<T> r = apply<kOp>(va, vb);
        store(y + i, add ? load(y + i, lanes) + r : r, lanes);
      });
}

template <Binary kOp, bool A, bool B, class T>
void binary_rows(T* y, const MatrixOperand<T>& a, const MatrixOperand<T>& b, int64_t rows, int64_t columns,
                 bool add) {
  for (int64_t i = 0; i < rows; ++i) {
    binary_row<kOp, A, B>(y + i * columns, a.data + i * a.row, b.data + i * b.row, columns, add);
  }
}

template <Binary kOp, class T>
void binary_matrix(T* y, const MatrixOperand<T>& a, const MatrixOperand<T>& b, int64_t rows, int64_t columns,
                   bool add) {
  if (rows <= 0 || columns <= 0) return;
  // Matrices without gaps are one long row.
  if (a.column == 1 && b.column == 1 && a.row == columns && b.row == columns) {
    return binary_rows<kOp, true, true>(y, a, b, 1, rows * columns, add);
  }
  if (a.column == 1 && b.column == 1) return binary_rows<kOp, true, true>(y, a, b, rows, columns, add);
  if (a.column == 1) return binary_rows<kOp, true, false>(y, a, b, rows, columns, add);
  if (b.column == 1) return binary_rows<kOp, false, true>(y, a, b, rows, columns, add);
  binary_rows<kOp, false, false>(y, a, b, rows, columns, add);
}

template <class T>
constexpr Binaries<T> kBinaries = {{binary_matrix<Binary::add, T>, binary_matrix<Binary::sub, T>,
                                    binary_matrix<Binary::mul, T>, binary_matrix<Binary::div, T>,
                                    binary_matrix<Binary::chain_mul, T>,
                                    binary_matrix<Binary::chain_div, T>}};

}  // namespace

const Binaries<float> float_binaries = kBinaries<float>;
const Binaries<double> double_binaries = kBinaries<double>;

}  // namespace handgrad::kernels::HANDGRAD_TARGET

#else

#include "handgrad/core/broadcast.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/walk.h"

namespace handgrad {
namespace {

constexpr std::int64_t kGrain = grain_for(0.3);

using kernels::Binary;

// y = a op b, or += when `add` is set. The steps are 1, or 0 for one number that is repeated.
template <Binary kOp, class T>
void compute_flat(Array& y, const T* a, std::int64_t step_a, const T* b, std::int64_t step_b, bool add) {
  const auto run = kernels::binary_function<T>(kOp);
  T* to = y.mutable_data<T>();
  const std::int64_t n = y.numel();
  if (n <= kGrain) return run(to, {a, n, step_a}, {b, n, step_b}, 1, n, add);
  parallel_ranges(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t count = end - begin;
    run(to + begin, {a + begin * step_a, count, step_a}, {b + begin * step_b, count, step_b}, 1, count, add);
  });
}

// The same with y of the shape that a and b broadcast to.
template <Binary kOp, class T>
void compute(Array& y, const Array& a, const Array& b, bool add) {
  const T* from_a = a.data<T>();
  const T* from_b = b.data<T>();
  if (a.shape() == b.shape()) return compute_flat<kOp>(y, from_a, 1, from_b, 1, add);
  const auto run = kernels::binary_function<T>(kOp);
  T* to = y.mutable_data<T>();
  const Walk<2> walk = walk_over<2>(y.shape(), {&a.shape(), &b.shape()});
  for_each_matrix(walk, kGrain,
                  [&](std::int64_t at, const auto& offsets, std::int64_t rows, std::int64_t columns) {
                    run(to + at, {from_a + offsets[0], walk.row_step(0), walk.column_step(0)},
                        {from_b + offsets[1], walk.row_step(1), walk.column_step(1)}, rows, columns, add);
                  });
}

template <Binary kOp>
void compute(Array& y, const Array& a, const Array& b, bool add = false) {
  dispatch(y.dtype(), [&](auto zero) { compute<kOp, decltype(zero)>(y, a, b, add); });
}

// y = x op number, or number op x when the number is on the left, or += when `add` is set.
template <Binary kOp>
void compute(Array& y, const Array& x, double number, bool left, bool add) {
  dispatch(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T value = static_cast<T>(number);
    left ? compute_flat<kOp>(y, &value, 0, x.data<T>(), 1, add)
         : compute_flat<kOp>(y, x.data<T>(), 1, &value, 0, add);
  });
}

template <Binary kOp>
Array computed(const char* name, const Tensor& a, const Tensor& b) {
  const DType type = checks::common_type(name, {{"a", a}, {"b", b}});
  Array y = a.shape() == b.shape() ? Array::like(a.array())
                                   : Array(broadcast_shape(name, {{"a", a}, {"b", b}}), type);
  compute<kOp>(y, a.array(), b.array());
  return y;
}

template <Binary kOp>
Array computed(const char* name, const Tensor& x, double number, bool left = false) {
  checks::common_type(name, {{"x", x}});
  Array y = Array::like(x.array());
  compute<kOp>(y, x.array(), number, left, false);
  return y;
}

void add_backward(const Node& node, const Array& dy, GradSink& sink) {
  if (sink.wants(0)) add_gradient(sink, node, 0, dy);
  if (sink.wants(1)) add_gradient(sink, node, 1, dy);
}

void pass_backward(const Node& /*node*/, const Array& dy, GradSink& sink) { sink.move(0, dy); }

// dy op number
template <Binary kOp>
void number_backward(GradSink& sink, const Node& node, int i, const Array& dy, double number) {
  compute_gradient(sink, node, i, dy, [&](Array& dx, bool add) { compute<kOp>(dx, dy, number, false, add); });
}

void neg_backward(const Node& node, const Array& dy, GradSink& sink) {
  number_backward<Binary::chain_mul>(sink, node, 0, dy, -1);
}

void sub_backward(const Node& node, const Array& dy, GradSink& sink) {
  if (sink.wants(0)) add_gradient(sink, node, 0, dy);
  if (sink.wants(1)) number_backward<Binary::chain_mul>(sink, node, 1, dy, -1);
}

void mul_backward(const Node& node, const Array& dy, GradSink& sink) {
  for (int i = 0; i < 2; ++i) {
    if (!sink.wants(i)) continue;
    const Array& factor = node.saved(i == 0 ? "b" : "a");
    compute_gradient(sink, node, i, dy,
                     [&](Array& dx, bool add) { compute<Binary::chain_mul>(dx, dy, factor, add); });
  }
}

void mul_number_backward(const Node& node, const Array& dy, GradSink& sink) {
  number_backward<Binary::chain_mul>(sink, node, 0, dy, node.number("factor"));
}

// -(dy / b) * y, the gradient of a quotient's divisor, for input `i`.
void divisor_backward(GradSink& sink, const Node& node, int i, const Array& dy) {
  Array part = Array::like(dy);
  compute<Binary::chain_div>(part, dy, node.saved("b"));
  compute<Binary::mul>(part, part, -1.0, false, false);
  compute_gradient(sink, node, i, dy,
                   [&](Array& db, bool add) { compute<Binary::chain_mul>(db, part, node.saved("y"), add); });
}

void div_backward(const Node& node, const Array& dy, GradSink& sink) {
  if (sink.wants(0)) {
    const Array& b = node.saved("b");
    compute_gradient(sink, node, 0, dy,
                     [&](Array& da, bool add) { compute<Binary::chain_div>(da, dy, b, add); });
  }
  if (sink.wants(1)) divisor_backward(sink, node, 1, dy);
}

void div_number_backward(const Node& node, const Array& dy, GradSink& sink) {
  number_backward<Binary::chain_div>(sink, node, 0, dy, node.number("divisor"));
}

void number_div_backward(const Node& node, const Array& dy, GradSink& sink) {
  divisor_backward(sink, node, 0, dy);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  return record("add", computed<Binary::add>("add", a, b), {a, b}, {}, add_backward);
}

Tensor sub(const Tensor& a, const Tensor& b) {
  return record("sub", computed<Binary::sub>("sub", a, b), {a, b}, {}, sub_backward);
}

Tensor mul(const Tensor& a, const Tensor& b) {
  return record("mul", computed<Binary::mul>("mul", a, b), {a, b},
                {{"a", a.array(), b.needs_grad()}, {"b", b.array(), a.needs_grad()}}, mul_backward);
}

Tensor div(const Tensor& a, const Tensor& b) {
  const Array y = computed<Binary::div>("div", a, b);
  return record("div", y, {a, b}, {{"b", b.array()}, {"y", y, b.needs_grad()}}, div_backward);
}

Tensor add(const Tensor& a, double b) {
  return record("add", computed<Binary::add>("add", a, b), {a}, {}, pass_backward);
}
Tensor add(double a, const Tensor& b) { return add(b, a); }

Tensor sub(const Tensor& a, double b) {
  return record("sub", computed<Binary::sub>("sub", a, b), {a}, {}, pass_backward);
}
Tensor sub(double a, const Tensor& b) {
  return record("sub", computed<Binary::sub>("sub", b, a, true), {b}, {}, neg_backward);
}

Tensor mul(const Tensor& a, double b) {
  return record("mul", computed<Binary::mul>("mul", a, b), {a}, {}, mul_number_backward, {{"factor", b}});
}
Tensor mul(double a, const Tensor& b) { return mul(b, a); }

Tensor div(const Tensor& a, double b) {
  return record("div", computed<Binary::div>("div", a, b), {a}, {}, div_number_backward, {{"divisor", b}});
}
Tensor div(double a, const Tensor& b) {
  const Array y = computed<Binary::div>("div", b, a, true);
  return record("div", y, {b}, {{"b", b.array()}, {"y", y}}, number_div_backward);
}

Tensor neg(const Tensor& x) {
  return record("neg", computed<Binary::mul>("neg", x, -1), {x}, {}, neg_backward);
}

}  // namespace handgrad

#endif
