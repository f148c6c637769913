// The matrix product over a batch, with transpose flags.
//
//   C = A B          dA = dC B^T       dB = A^T dC
//   C = A^T B        dA = B dC^T       dB = A dC
//   C = A B^T        dA = dC B         dB = dC^T A
//   C = A^T B^T      dA = B^T dC^T     dB = dC^T A^T
//
// A [..., M, K], B [..., K, N] and C [..., M, N] after the flags. Leading dimensions broadcast; the gradient of a
// repeated operand is the sum over its repetitions, in their order. Saved: the factor of each wanted gradient.
#include "handgrad/core/matmul.h"
#include "handgrad/core/broadcast.h"
#include "handgrad/core/ops.h"

namespace handgrad {
namespace {

// One operand as a stack of matrices, and how they are read.
struct Stack {
  const Array* array;
  Shape batch;
  std::int64_t stored_rows, stored_columns;
  bool transposed;

  std::int64_t rows() const { return transposed ? stored_columns : stored_rows; }
  std::int64_t columns() const { return transposed ? stored_rows : stored_columns; }
  Stack flipped() const { return {array, batch, stored_rows, stored_columns, !transposed}; }
};

// The last two dimensions are the matrix; a vector is one stored row.
Stack stack_of(const Array& x, bool transposed) {
  const Shape& shape = x.shape();
  if (shape.rank() == 1) return {&x, {}, 1, shape[0], transposed};
  return {&x, Shape(shape.begin(), static_cast<std::size_t>(shape.rank() - 2)), shape.at(-2), shape.at(-1),
          transposed};
}

template <class T>
Matmul<T> one_product(const Stack& a, const Stack& b) {
  Matmul<T> product;
  product.m = a.rows();
  product.k = a.columns();
  product.n = b.columns();
  product.lda = a.stored_columns;
  product.a_transposed = a.transposed;
  product.ldb = b.stored_columns;
  product.b_transposed = b.transposed;
  product.ldc = product.n;
  return product;
}

// The innermost loop as a batch, or, where the matrices of the stack lie one below another, as one large product.
template <class T>
void take_batch(Matmul<T>& product, const Loops<3>& loops) {
  const std::int64_t size_a = product.m * product.k, size_b = product.k * product.n,
                     size_c = product.m * product.n;
  const bool a_moves = loops.column_step(0) != 0, b_moves = loops.column_step(1) != 0,
             c_moves = loops.column_step(2) != 0;
  if (!product.a_transposed && a_moves && !b_moves && c_moves) {  // many matrices, one factor
    product.m *= loops.columns();
  } else if (product.a_transposed && !product.b_transposed && a_moves && b_moves &&
             !c_moves) {  // and its gradient
    product.k *= loops.columns();
  } else {
    product.batch = loops.columns();
    product.a_stride = a_moves ? size_a : 0;
    product.b_stride = b_moves ? size_b : 0;
    product.c_stride = c_moves ? size_c : 0;
  }
}

// c = op(a) op(b), or += with `add`, for every place of `batch`. Where c has fewer matrices than that, the products
// that belong to one of them add up.
template <class T>
void multiply(const Stack& a, const Stack& b, Array& c, const Shape& c_batch, const Shape& batch, bool add) {
  if (batch.numel() == 0) {
    if (!add) c.fill(0);
    return;
  }
  const Loops<3> loops = loops_over<3>(batch, {&a.batch, &b.batch, &c_batch});
  Matmul<T> product = one_product<T>(a, b);
  const std::int64_t sizes[3] = {product.m * product.k, product.k * product.n, product.m * product.n};
  take_batch(product, loops);
  const T* from_a = a.array->data<T>();
  const T* from_b = b.array->data<T>();
  T* to = c.mutable_data<T>();

  std::int64_t turns = 1;
  for (int d = 1; d < loops.depth; ++d) turns *= loops.size[d];
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    std::int64_t at[3] = {}, rest = turn;
    bool first = true;  // no earlier turn has written to these matrices of c
    for (int d = 1; d < loops.depth; ++d) {
      const std::int64_t i = rest % loops.size[d];
      rest /= loops.size[d];
      for (int k = 0; k < 3; ++k) at[k] += i * loops.step[k][d];
      first = first && (loops.step[2][d] != 0 || i == 0);
    }
    product.a = from_a + at[0] * sizes[0];
    product.b = from_b + at[1] * sizes[1];
    product.c = to + at[2] * sizes[2];
    product.accumulate = add || !first;
    matmul(product);
  }
}

void give_product(GradSink& sink, int i, const Stack& a, const Stack& b, const Shape& batch) {
  const GradSink::Target into = sink.into(i);
  const Shape c_batch = stack_of(into.array, false).batch;
  dispatch(into.array.dtype(),
           [&](auto zero) { multiply<decltype(zero)>(a, b, into.array, c_batch, batch, into.add); });
}

void matmul_backward(const Node& node, const Array& dy, GradSink& sink) {
  const Shape& batch = node.list("batch");
  const Shape& matrix = node.list("matrix");
  const Shape& transposed = node.list("transposed");
  const bool a_flag = transposed[0] != 0, b_flag = transposed[1] != 0;
  const Stack c = {&dy, batch, matrix[0], matrix[1], false};
  if (sink.wants(0)) {
    const Stack b = stack_of(node.saved("b"), b_flag);
    a_flag ? give_product(sink, 0, b, c.flipped(), batch) : give_product(sink, 0, c, b.flipped(), batch);
  }
  if (sink.wants(1)) {
    const Stack a = stack_of(node.saved("a"), a_flag);
    b_flag ? give_product(sink, 1, c.flipped(), a, batch) : give_product(sink, 1, a.flipped(), c, batch);
  }
}

[[noreturn]] void refuse(const Tensor& a, const Tensor& b, const std::string& message) {
  throw ShapeError("matmul", message, checks::shapes({{"a", a}, {"b", b}}));
}

void check(const Tensor& a, const Tensor& b, Transpose a_flag, Transpose b_flag) {
  checks::common_type("matmul", {{"a", a}, {"b", b}});
  if (a.rank() == 0 || b.rank() == 0) refuse(a, b, "operands must have at least one dimension, got a scalar");
  if ((a.rank() == 1 && a_flag == Transpose::yes) || (b.rank() == 1 && b_flag == Transpose::yes))
    refuse(a, b, "an operand to transpose must have at least two dimensions, got one");
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, Transpose a_flag, Transpose b_flag) {
  check(a, b, a_flag, b_flag);
  const Stack left = stack_of(a.array(), a_flag == Transpose::yes);
  const Stack right = stack_of(b.array(), b.rank() == 1 || b_flag == Transpose::yes);
  if (left.columns() != right.rows())
    refuse(a, b,
           "inner dimensions must agree, got " + std::to_string(left.columns()) + " and " +
               std::to_string(right.rows()));
  Shape batch;
  if (!broadcast_shapes(left.batch, right.batch, batch))
    refuse(a, b,
           "leading dimensions must broadcast, got " + left.batch.text() + " and " + right.batch.text());

  Shape shape = batch;
  if (a.rank() > 1) shape.push_back(left.rows());
  if (b.rank() > 1) shape.push_back(right.columns());
  Array y(shape, a.dtype());
  dispatch(a.dtype(), [&](auto zero) { multiply<decltype(zero)>(left, right, y, batch, batch, false); });
  return record("matmul", std::move(y), {a, b},
                {{"a", a.array(), b.needs_grad()}, {"b", b.array(), a.needs_grad()}}, matmul_backward,
                {{"batch", batch},
                 {"matrix", Shape{left.rows(), right.columns()}},
                 {"transposed", Shape{left.transposed, right.transposed}}});
}

}  // namespace handgrad
