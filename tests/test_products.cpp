// matmul, linear and linear_fused: values, flags, batches, gradients that add up in place, errors.
#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/gradcheck.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"

using namespace handgrad;
using expect::exactly;
using expect::leaf;
using expect::same_bits;

namespace {

constexpr Transpose kNo = Transpose::no, kYes = Transpose::yes;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor whole_numbers(const Shape& shape, int seed) {  // small, so that every product is exact
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i)
    values.push_back(static_cast<double>((i * 7 + seed * 3) % 11 - 5));
  return Tensor::of(values, shape);
}

double element(const Tensor& x, std::int64_t matrix, std::int64_t row, std::int64_t column, bool transposed) {
  const std::int64_t rows = x.size(-2), columns = x.size(-1);
  return x.array().value(matrix * rows * columns +
                         (transposed ? column * columns + row : row * columns + column));
}

}  // namespace

TEST_CASE("matmul: two matrices by hand") {
  const Tensor a = leaf(Array::of({1, 2, 3, 4, 5, 6}, {2, 3})),
               b = leaf(Array::of({1, 0, 2, 1, 0, 3}, {3, 2}));
  const Tensor y = matmul(a, b);
  CHECK(y.shape() == Shape{2, 2});
  exactly(y, {5, 11, 14, 23});
  y.backward(Array::of({1, 0, 0, 10}, {2, 2}));
  exactly(a.grad(), {1, 2, 0, 0, 10, 30});
  exactly(b.grad(), {1, 40, 2, 50, 3, 60});
}

TEST_CASE("matmul: flags and broadcast batches against the definition") {
  const struct {
    Shape a, b, y;
  } batches[] = {
      {{}, {}, {}},
      {{3}, {3}, {3}},
      {{3}, {}, {3}},
      {{}, {3}, {3}},
      {{2, 3}, {3}, {2, 3}},
      {{3}, {2, 3}, {2, 3}},
      {{2, 1}, {1, 3}, {2, 3}},
      {{2, 1, 2}, {3, 1}, {2, 3, 2}},
      {{1, 2}, {2, 2}, {2, 2}},
      {{2, 1, 2, 1}, {1, 2, 1, 2}, {2, 2, 2, 2}},
  };
  for (const auto& batch : batches) {
    for (const bool a_flag : {false, true}) {
      for (const bool b_flag : {false, true}) {
        Shape a_shape = batch.a, b_shape = batch.b, y_shape = batch.y;
        for (const int size : {a_flag ? 3 : 2, a_flag ? 2 : 3}) a_shape.push_back(size);
        for (const int size : {b_flag ? 4 : 3, b_flag ? 3 : 4}) b_shape.push_back(size);
        for (const int size : {2, 4}) y_shape.push_back(size);
        CAPTURE(a_shape.text());
        CAPTURE(b_shape.text());
        const Tensor a = whole_numbers(a_shape, 1), b = whole_numbers(b_shape, 2);
        const Tensor y = matmul(a, b, a_flag ? kYes : kNo, b_flag ? kYes : kNo);
        REQUIRE(y.shape() == y_shape);
        const auto matrix_of = [&](const Shape& own,
                                   std::int64_t i) {  // which matrix of an operand serves place i
          std::int64_t at = 0, step = 1;
          for (int back = 1; back <= batch.y.rank(); ++back) {
            if (back <= own.rank() && own.at(-back) != 1) at += i % batch.y.at(-back) * step;
            if (back <= own.rank()) step *= own.at(-back);
            i /= batch.y.at(-back);
          }
          return at;
        };
        std::vector<double> expected;
        for (std::int64_t i = 0; i < batch.y.numel(); ++i)
          for (std::int64_t row = 0; row < 2; ++row)
            for (std::int64_t column = 0; column < 4; ++column) {
              double total = 0;
              for (std::int64_t k = 0; k < 3; ++k)
                total += element(a, matrix_of(batch.a, i), row, k, a_flag) *
                         element(b, matrix_of(batch.b, i), k, column, b_flag);
              expected.push_back(total);
            }
        exactly(y, expected);
        const GradCheckReport report = check_gradients(
            [&](const std::vector<Tensor>& in) {
              return matmul(in[0], in[1], a_flag ? kYes : kNo, b_flag ? kYes : kNo);
            },
            {Tensor::constant(a.array().to(DType::float64)), Tensor::constant(b.array().to(DType::float64))});
        CHECK_MESSAGE(report.ok, report.text());
      }
    }
  }
}

TEST_CASE("matmul: vectors are a row on the left and a column on the right") {
  const Tensor v = Tensor::of({1, 2, 3}), m = whole_numbers({2, 3, 4}, 1);
  CHECK(matmul(v, v).shape() == Shape{});
  exactly(matmul(v, v), {14});
  CHECK(matmul(v, m).shape() == Shape{2, 4});
  exactly(matmul(v, m), matmul(reshape(v, {1, 3}), m).values());
  CHECK(matmul(m, v, kYes).shape() == Shape{2, 4});
  exactly(matmul(m, v, kYes), matmul(v, m).values());
  CHECK(matmul(v, m, kNo, kNo).values() == matmul(v, permute(m, {0, 2, 1}), kNo, kYes).values());
  const std::vector<Tensor> inputs = {Tensor::constant(expect::normal({3}, 1, DType::float64)),
                                      Tensor::constant(expect::normal({2, 3, 4}, 2, DType::float64))};
  const auto check = [&](const auto& f) {
    const GradCheckReport report =
        check_gradients([&](const std::vector<Tensor>& in) { return f(in[0], in[1]); }, inputs);
    CHECK_MESSAGE(report.ok, report.text());
  };
  check([](const Tensor& x, const Tensor& w) { return matmul(x, w); });
  check([](const Tensor& x, const Tensor& w) { return matmul(w, x, kYes); });
  check([](const Tensor& x, const Tensor& w) { return matmul(matmul(x, w), matmul(w, x, kYes), kYes); });
  check([](const Tensor& x, const Tensor& w) { return matmul(x, x) * w; });
}

TEST_CASE("matmul: nothing to multiply, nothing to sum") {
  const auto product = [](const Shape& a_shape, const Shape& b_shape) {
    const Tensor a = leaf(Array::full(a_shape, 2)), b = leaf(Array::full(b_shape, 3));
    const Tensor y = matmul(a, b);
    for (const double value : y.values()) CHECK(value == 0);
    for (const Shape& shape : {a_shape, b_shape})
      Array::full(shape, 7);  // the next array there has sevens in it
    y.backward(Array::full(y.shape(), 1));
    for (const Tensor& each : {a, b})
      for (const double value : each.grad().values()) CHECK(value == 0);
    return y.shape();
  };
  CHECK(product({0, 3}, {3, 4}) == Shape{0, 4});
  CHECK(product({2, 0}, {0, 4}) == Shape{2, 4});
  CHECK(product({2, 3}, {3, 0}) == Shape{2, 0});
  CHECK(product({0, 2, 3}, {3, 4}) == Shape{0, 2, 4});
  CHECK(product({0, 2, 3}, {1, 3, 4}) == Shape{0, 2, 4});
  CHECK(product({0}, {0}) == Shape{});
}

TEST_CASE("matmul: NaN stays in its row, and no term is left out") {
  const Tensor a = Tensor::of({kNan, 1, 0, 1}, {2, 2}), b = Tensor::of({INFINITY, 1, 1, 1}, {2, 2});
  const std::vector<double> y = matmul(a, b).values();
  CHECK(std::isnan(y[0]));
  CHECK(std::isnan(y[1]));
  CHECK(std::isnan(y[2]));  // 0 * inf
  CHECK(y[3] == 1);
}

TEST_CASE("matmul: errors name the rule and both operands") {
  CHECK(expect::message<ShapeError>([] {
          matmul(Tensor::zeros({8, 64, 768}), Tensor::zeros({512, 2304}));
        }) ==
        "matmul: inner dimensions must agree, got 768 and 512\n"
        "  a [8, 64, 768]   b [512, 2304]");
  CHECK(expect::message<ShapeError>([] {
          matmul(Tensor::zeros({2, 3, 4}), Tensor::zeros({5, 4, 3}));
        }) ==
        "matmul: leading dimensions must broadcast, got [2] and [5]\n"
        "  a [2, 3, 4]   b [5, 4, 3]");
  CHECK_THROWS_AS(matmul(Tensor::scalar(1), Tensor::zeros({1})), ShapeError);
  CHECK_THROWS_AS(matmul(Tensor::zeros({3}), Tensor::zeros({3}), kYes), ShapeError);
  CHECK_THROWS_AS(matmul(Tensor::zeros({3, 3}), Tensor::zeros({3, 3}, DType::float64)), DTypeError);
}

TEST_CASE("linear: by hand, with and without bias") {
  const Tensor x = leaf(Array::of({1, 2, 3, 4}, {2, 2})), w = leaf(Array::of({1, 0, 0, 1, 1, 1}, {3, 2}));
  const Tensor b = leaf({10, 20, 30});
  exactly(linear(x, w), {1, 2, 3, 3, 4, 7});
  const Tensor y = linear(x, w, b);
  exactly(y, {11, 22, 33, 13, 24, 37});
  y.backward(Array::of({1, 0, 0, 0, 1, 2}, {2, 3}));
  exactly(x.grad(), {1, 0, 2, 3});
  exactly(w.grad(), {1, 2, 3, 4, 6, 8});
  exactly(b.grad(), {1, 1, 2});
}

TEST_CASE("linear: any leading dimensions, and none") {
  const Tensor w = whole_numbers({4, 3}, 1), b = whole_numbers({4}, 2);
  CHECK(linear(whole_numbers({3}, 3), w, b).shape() == Shape{4});
  CHECK(linear(whole_numbers({2, 5, 3}, 3), w, b).shape() == Shape{2, 5, 4});
  const Tensor x = leaf(Array::zeros({0, 5, 3})), trained = leaf(w.array().copy()),
               bias = leaf(b.array().copy());
  const Tensor y = linear(x, trained, bias);
  CHECK(y.shape() == Shape{0, 5, 4});
  y.backward(Array::zeros({0, 5, 4}));
  exactly(trained.grad(), std::vector<double>(12, 0.0));
  exactly(bias.grad(), {0, 0, 0, 0});
}

TEST_CASE("linear: a weight's gradient adds up in the array that is there") {
  const Tensor x = Tensor::of({1, 2}, Shape{1, 2}), w = leaf(Array::of({1, 1}, {1, 2}));
  const auto step = [&] { linear(x, w).backward(Array::full({1, 1}, 1)); };
  step();
  const float* numbers = w.grad().data<float>();
  step();
  step();
  exactly(w.grad(), {3, 6});
  CHECK(w.grad().data<float>() == numbers);
}

TEST_CASE("linear: keeps only what the wanted gradients need") {
  const Tensor x = Tensor::of({1, 2}, Shape{1, 2}), w = leaf(Array::of({1, 1}, {1, 2}));
  const Tensor y = linear(x, w);
  const Node& trained = y.node();
  CHECK(trained.has_saved("x"));
  CHECK_FALSE(trained.has_saved("weight"));
  const Tensor in = leaf(x.array());
  const Tensor z = linear(in, w.detach());
  const Node& frozen = z.node();
  CHECK(frozen.has_saved("weight"));
  CHECK_FALSE(frozen.has_saved("x"));
}

TEST_CASE("linear: a bias gradient sums in double") {
  const Tensor x = Tensor::zeros({4, 1}), w = Tensor::zeros({2, 1}), b = leaf({0, 0});
  linear(x, w, b).backward(Array::of({1e8, 1, 1, 2, -1e8, 3, 1, 4}, {4, 2}));
  exactly(b.grad(), {2, 10});
}

TEST_CASE("linear_fused: each part equals a separate linear, bit for bit") {
  const Tensor x = leaf(expect::normal({3, 37, 65}, 1));
  const Tensor wq = leaf(expect::normal({65, 65}, 2)), wk = leaf(expect::normal({33, 65}, 3)),
               wv = leaf(expect::normal({1, 65}, 4)), bq = leaf(expect::normal({65}, 5)),
               bv = leaf(expect::normal({1}, 6));
  const Tensor y = linear_fused(x, {wq, wk, wv}, {bq, {}, bv});
  REQUIRE(y.shape() == Shape{3, 37, 99});
  CHECK(same_bits(slice(y, -1, 0, 65).array(), linear(x, wq, bq).array()));
  CHECK(same_bits(slice(y, -1, 65, 98).array(), linear(x, wk).array()));
  CHECK(same_bits(slice(y, -1, 98, 99).array(), linear(x, wv, bv).array()));

  const Array dy = expect::normal({3, 37, 99}, 7);
  y.backward(dy);
  std::vector<Array> joined;
  for (Tensor each : {wq, wk, wv, bq, bv, x}) {
    joined.push_back(each.grad());
    each.zero_grad();
  }
  concat({linear(x, wq, bq), linear(x, wk), linear(x, wv, bv)}, -1).backward(dy);
  int i = 0;
  for (const Tensor& each : {wq, wk, wv, bq, bv})
    CHECK(same_bits(joined[static_cast<std::size_t>(i++)], each.grad()));
  expect::near(joined[5], x.grad().values(), 1e-4, 1e-5);
}

TEST_CASE("linear_fused: gradients, with a bias here and there") {
  std::vector<Tensor> inputs;
  for (const Shape& shape : {Shape{2, 2, 3}, {4, 3}, {2, 3}, {5, 3}, {4}, {5}})
    inputs.push_back(Tensor::constant(expect::normal(shape, inputs.size(), DType::float64)));
  const GradCheckReport report = check_gradients(
      [](const std::vector<Tensor>& in) {
        return linear_fused(in[0], {in[1], in[2], in[3]}, {in[4], {}, in[5]}) +
               sum(linear_fused(in[0], {in[2], in[2]}));
      },
      inputs);
  CHECK_MESSAGE(report.ok, report.text());
}

TEST_CASE("linear_fused: frozen maps get no gradient and the others theirs") {
  const Tensor x = whole_numbers({2, 3}, 1), w1 = whole_numbers({2, 3}, 2),
               w2 = leaf(whole_numbers({1, 3}, 3).array());
  const Tensor y = linear_fused(x, {w1, w2});
  CHECK_FALSE(y.node().has_saved("weight 0"));
  y.backward(Array::of({5, 5, 1, 5, 5, 2}, {2, 3}));
  exactly(w2.grad(), matmul(Tensor::of({1, 2}, Shape{1, 2}), x).values());
  CHECK_FALSE(w1.has_grad());
}

TEST_CASE("linear: errors name the rule and every operand") {
  CHECK(expect::message<ShapeError>([] {
          linear(Tensor::zeros({2, 3}), Tensor::zeros({4, 5}), Tensor::zeros({4}));
        }) ==
        "linear: inner dimensions must agree: x has 3 features, weight [out, in] takes 5\n"
        "  x [2, 3]   weight [4, 5]   bias [4]");
  CHECK(expect::message<ShapeError>([] {
          linear(Tensor::zeros({2, 3}), Tensor::zeros({4, 3}), Tensor::zeros({3}));
        }) ==
        "linear: bias must have shape [4], one number for each row of weight, got [3]\n"
        "  x [2, 3]   weight [4, 3]   bias [3]");
  CHECK(expect::message<ShapeError>([] { linear(Tensor::zeros({3}), Tensor::zeros({3})); }) ==
        "linear: weight must have shape [out, in], got [3]\n  x [3]   weight [3]");
  CHECK_THROWS_AS(linear(Tensor::scalar(1), Tensor::zeros({3, 1})), ShapeError);
  CHECK_THROWS_AS(linear(Tensor::zeros({3}), Tensor()), DTypeError);
  CHECK_THROWS_AS(linear_fused(Tensor::zeros({3}), {}), ShapeError);
  const Tensor w = Tensor::zeros({4, 3});
  CHECK_THROWS_AS(linear_fused(Tensor::zeros({3}), {w, w}, {Tensor::zeros({4})}), ShapeError);
  CHECK_THROWS_AS(linear_fused(Tensor::zeros({3}), {w, w, w, w, w, w, w}), ShapeError);
}

TEST_CASE("products: the same bits for any number of threads") {
  const Tensor x = leaf(expect::normal({4, 96, 64}, 1)), w = leaf(expect::normal({200, 64}, 2)),
               b = leaf(expect::normal({200}, 3));
  const int before = thread_count();
  std::vector<Array> first;
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    for (Tensor each : {x, w, b}) each.zero_grad();
    const Tensor h = linear(x, w, b);
    const Tensor y = matmul(h, h, kNo, kYes);
    y.backward(expect::normal(y.shape(), 4));
    const std::vector<Array> all = {y.array(), x.grad(), w.grad(), b.grad()};
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(same_bits(first[i], all[i]));
  }
  set_thread_count(before);
}
