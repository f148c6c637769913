// The matrix product over a batch, with transpose flags.
//
//   C = A B          dA = dC B^T       dB = A^T dC
//   C = A^T B        dA = B dC^T       dB = A dC
//   C = A B^T        dA = dC B         dB = dC^T A
//   C = A^T B^T      dA = B^T dC^T     dB = dC^T A^T
//
// A [..., M, K], B [..., K, N] and C [..., M, N] after the flags. Leading dimensions broadcast; the gradient of a
// repeated operand is the sum over its repetitions, in their order. Saved: the factor of each wanted gradient.
#include "handgrad/core/ops/matmul.h"

#include <algorithm>

#include "handgrad/core/broadcast.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/walk.h"

namespace handgrad {

// ---- The product of a batch, cut into chunks for the workers

namespace {

using std::int64_t;

// Multiply-adds in about 20 us; handing less to another thread costs more than it saves.
constexpr int64_t kGrain = 1'500'000;
constexpr int64_t kMostChunks = 32;
// Rows of one chunk: so many that a transposed panel of B pays, and 256 numbers of each fit the second-level
// cache.
constexpr int64_t kMostRows = 512;
constexpr int64_t kFewestRows = 96;
constexpr int64_t kPanel = 32;

int64_t pieces_of(int64_t total, int64_t size) { return (total + size - 1) / size; }
int64_t round_up(int64_t x, int64_t multiple) { return pieces_of(x, multiple) * multiple; }

// How the work is cut; every product of the batch alike. Depends on the problem only.
struct Cut {
  int64_t batch, rows, columns;  // of one chunk
};

template <class T>
int64_t work_of(const Matmul<T>& x) {
  return x.m * x.n * (x.k + 8) * static_cast<int64_t>(sizeof(T) / sizeof(float));
}

template <class T>
Cut cut(const Matmul<T>& x) {
  // A sum over the batch is one chain after the other, so all of it belongs to one chunk.
  const int64_t separate = x.c_stride == 0 ? 1 : x.batch;
  const int64_t chunks = std::clamp<int64_t>(work_of(x) * x.batch / kGrain, 1, kMostChunks);
  if (chunks <= separate) return {x.c_stride == 0 ? x.batch : pieces_of(x.batch, chunks), x.m, x.n};

  const int64_t per_product = pieces_of(chunks, separate);
  const int64_t panels = pieces_of(x.n, kPanel);
  int64_t blocks = pieces_of(x.m, kMostRows);
  const int64_t groups = std::min(panels, pieces_of(per_product, blocks));
  blocks = std::max(blocks, std::min(pieces_of(per_product, groups), pieces_of(x.m, kFewestRows)));
  return {x.c_stride == 0 ? x.batch : 1, round_up(pieces_of(x.m, blocks), 12),
          pieces_of(panels, groups) * kPanel};
}

}  // namespace

template <class T>
void matmul(const Matmul<T>& x) {
  if (x.m <= 0 || x.n <= 0 || x.batch <= 0) return;
  const auto run = HANDGRAD_ACTIVE(gemm<T>);
  if (x.batch == 1 && work_of(x) <= kGrain) return run(x, 0, x.m, 0, x.n);
  const Cut size = cut(x);
  const int64_t row_blocks = pieces_of(x.m, size.rows);
  const int64_t column_groups = pieces_of(x.n, size.columns);
  const int64_t per_product = row_blocks * column_groups;

  parallel_for(pieces_of(x.batch, size.batch) * per_product, [&](int64_t chunk) {
    const int64_t first = chunk / per_product * size.batch;
    const int64_t row = chunk % per_product / column_groups * size.rows;
    const int64_t column = chunk % column_groups * size.columns;
    kernels::Product<T> product = x;
    for (int64_t i = first; i < std::min(first + size.batch, x.batch); ++i) {
      product.a = x.a + i * x.a_stride;
      product.b = x.b + i * x.b_stride;
      product.c = x.c + i * x.c_stride;
      product.accumulate = x.accumulate || (x.c_stride == 0 && i > 0);
      product.bias = x.c_stride == 0 && i + 1 < x.batch ? nullptr : x.bias;
      run(product, row, std::min(size.rows, x.m - row), column, std::min(size.columns, x.n - column));
    }
  });
}

template void matmul(const Matmul<float>&);
template void matmul(const Matmul<double>&);

// ---- The operation

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

// The innermost loop as a batch, or, where the matrices of the stack lie one below another, as one large product.
template <class T>
void take_batch(Matmul<T>& product, const Walk<3>& walk) {
  const std::int64_t size_a = product.m * product.k, size_b = product.k * product.n,
                     size_c = product.m * product.n;
  const bool a_moves = walk.column_step(0) != 0, b_moves = walk.column_step(1) != 0,
             c_moves = walk.column_step(2) != 0;
  if (!product.a_transposed && a_moves && !b_moves && c_moves) {  // many matrices, one factor
    product.m *= walk.columns();
  } else if (product.a_transposed && !product.b_transposed && a_moves && b_moves &&
             !c_moves) {  // and its gradient
    product.k *= walk.columns();
  } else {
    product.batch = walk.columns();
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
  const Walk<3> walk = walk_over<3>(batch, {&a.batch, &b.batch, &c_batch});
  const T* from_a = a.array->data<T>();
  const T* from_b = b.array->data<T>();
  T* to = c.mutable_data<T>();
  auto product =
      handgrad::product<T>(a.rows(), b.columns(), a.columns(), {from_a, a.stored_columns, a.transposed},
                           {from_b, b.stored_columns, b.transposed}, to, b.columns());
  const std::int64_t sizes[3] = {product.m * product.k, product.k * product.n, product.m * product.n};
  take_batch(product, walk);
  for (std::int64_t turn = 0; turn < walk.turns(1); ++turn) {
    std::int64_t at[3], rest = turn;
    walk.offsets_at(turn, 1, at);
    bool first = true;  // no earlier turn has written to these matrices of c
    for (int d = 1; d < walk.depth; rest /= walk.size[d++])
      first = first && (walk.step[2][d] != 0 || rest % walk.size[d] == 0);
    product.a = from_a + at[0] * sizes[0];
    product.b = from_b + at[1] * sizes[1];
    product.c = to + at[2] * sizes[2];
    product.accumulate = add || !first;
    matmul(product);
  }
}

void add_product(GradSink& sink, int i, const Stack& a, const Stack& b, const Shape& batch) {
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
    a_flag ? add_product(sink, 0, b, c.flipped(), batch) : add_product(sink, 0, c, b.flipped(), batch);
  }
  if (sink.wants(1)) {
    const Stack a = stack_of(node.saved("a"), a_flag);
    b_flag ? add_product(sink, 1, c.flipped(), a, batch) : add_product(sink, 1, a.flipped(), c, batch);
  }
}

[[noreturn]] void fail(const Tensor& a, const Tensor& b, const std::string& message) {
  checks::throw_shape("matmul", message, {{"a", a}, {"b", b}});
}

void check(const Tensor& a, const Tensor& b, Transpose a_flag, Transpose b_flag) {
  checks::common_type("matmul", {{"a", a}, {"b", b}});
  if (a.rank() == 0 || b.rank() == 0) fail(a, b, "operands must have at least one dimension, got a scalar");
  if ((a.rank() == 1 && a_flag == Transpose::yes) || (b.rank() == 1 && b_flag == Transpose::yes))
    fail(a, b, "an operand to transpose must have at least two dimensions, got one");
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, Transpose a_flag, Transpose b_flag) {
  check(a, b, a_flag, b_flag);
  const Stack left = stack_of(a.array(), a_flag == Transpose::yes);
  const Stack right = stack_of(b.array(), b.rank() == 1 || b_flag == Transpose::yes);
  if (left.columns() != right.rows())
    fail(a, b,
         "inner dimensions must agree, got " + std::to_string(left.columns()) + " and " +
             std::to_string(right.rows()));
  Shape batch;
  if (!broadcast_shapes(left.batch, right.batch, batch))
    fail(a, b, "leading dimensions must broadcast, got " + left.batch.text() + " and " + right.batch.text());

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
