// Sum, difference, product, quotient: broadcasting forward and back, one tensor used twice, numbers at the edge.
#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/broadcast.h"
#include "handgrad/core/gradcheck.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"

using namespace handgrad;
using expect::exactly;
using expect::leaf;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor leaf_of(const std::vector<double>& values, const Shape& shape) {
  return leaf(Array::of(values, shape));
}

void backward_of_ones(const Tensor& y) { y.backward(Array::full(y.shape(), 1, y.dtype())); }

/// The element of x at flat position `i` of the shape that x is broadcast to, computed from NumPy's rule alone.
double repeated(const Array& x, const Shape& out, std::int64_t i) {
  std::int64_t position = 0, step = 1;
  for (int back = 1; back <= out.rank(); ++back) {
    const std::int64_t at = i % out.at(-back);
    i /= out.at(-back);
    if (back > x.rank()) continue;
    if (x.shape().at(-back) != 1) position += at * step;
    step *= x.shape().at(-back);
  }
  return x.value(position);
}

const std::pair<Shape, Shape> kBroadcast[] = {
    {{3}, {3}},
    {{}, {2, 3}},
    {{2, 3}, {3}},
    {{2, 1}, {1, 3}},
    {{2, 3, 1}, {4}},
    {{1, 1}, {1}},
    {{5, 1, 3}, {5, 4, 1}},
    {{2, 1, 3, 1, 2}, {4, 1, 5, 1}},
    {{2, 1, 2, 1, 2, 1}, {1, 3, 1, 2, 1, 2}},
    {{1, 2, 3, 1, 1, 4}, {5, 2, 3, 2, 2, 4}},
    {{2, 2, 1, 1, 3, 3}, {2, 1, 1, 3, 3}},
};

}  // namespace

TEST_CASE("arithmetic: values under broadcasting up to six dimensions") {
  for (const auto& form : kBroadcast) {
    const Shape &a_shape = form.first, &b_shape = form.second;
    CAPTURE(a_shape.text());
    CAPTURE(b_shape.text());
    const Tensor a = Tensor::constant(expect::normal(a_shape, 1, DType::float64));
    const Tensor b = Tensor::constant(expect::normal(b_shape, 2, DType::float64));
    Shape shape;
    REQUIRE(broadcast_shapes(a_shape, b_shape, shape));
    std::vector<double> sums, differences, products, quotients;
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      const double p = repeated(a.array(), shape, i), q = repeated(b.array(), shape, i);
      sums.push_back(p + q);
      differences.push_back(p - q);
      products.push_back(p * q);
      quotients.push_back(p / q);
    }
    CHECK((a + b).shape() == shape);
    exactly(a + b, sums);
    exactly(a - b, differences);
    exactly(a * b, products);
    exactly(a / b, quotients);
  }
}

TEST_CASE("arithmetic: gradients under broadcasting up to six dimensions") {
  for (const auto& form : kBroadcast) {
    const Shape &a_shape = form.first, &b_shape = form.second;
    CAPTURE(a_shape.text());
    CAPTURE(b_shape.text());
    const Tensor a = Tensor::constant(expect::normal(a_shape, 1, DType::float64));
    const Tensor b = Tensor::constant(expect::normal(b_shape, 2, DType::float64)) * 0.1 + 2.0;
    const GradCheckReport report = check_gradients(
        [](const std::vector<Tensor>& in) { return in[0] * in[1] + in[0] / in[1] - (in[1] - in[0]); },
        {a, b});
    CHECK_MESSAGE(report.ok, report.text());
  }
}

TEST_CASE("arithmetic: a plain number on either side") {
  const Tensor x = leaf({1, 2, 4});
  exactly(x + 2.0, {3, 4, 6});
  exactly(2.0 + x, {3, 4, 6});
  exactly(x - 2.0, {-1, 0, 2});
  exactly(2.0 - x, {1, 0, -2});
  exactly(x * 3.0, {3, 6, 12});
  exactly(3.0 * x, {3, 6, 12});
  exactly(x / 4.0, {0.25, 0.5, 1});
  exactly(4.0 / x, {4, 2, 1});
  exactly(-x, {-1, -2, -4});
  backward_of_ones(4.0 / x + (2.0 - x) * 3.0 - x / 4.0);
  exactly(x.grad(), {-4 - 3 - 0.25, -1 - 3 - 0.25, -0.25 - 3 - 0.25});
}

TEST_CASE("arithmetic: results that are used twice (H16)") {
  const Tensor a = leaf({1});
  const Tensor b = a + a;
  const Tensor c = b + b;
  c.backward();
  exactly(a.grad(), {4});
}

TEST_CASE("arithmetic: both gradients of one tensor on both sides") {
  const auto gradient = [](const auto& f) {
    const Tensor a = leaf({3, -2});
    f(a).backward(Array::of({1, 10}, {2}));
    return a.grad().values();
  };
  CHECK(gradient([](const Tensor& a) { return a + a; }) == std::vector<double>{2, 20});
  CHECK(gradient([](const Tensor& a) { return a - a; }) == std::vector<double>{0, 0});
  CHECK(gradient([](const Tensor& a) { return a * a; }) == std::vector<double>{6, -40});
  CHECK(gradient([](const Tensor& a) { return a / a; }) == std::vector<double>{0, 0});
  CHECK(gradient([](const Tensor& a) { return a + a + a; }) == std::vector<double>{3, 30});
}

TEST_CASE("arithmetic: the upstream gradient is not changed by those it is passed on to") {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  const Array upstream = Array::of({1, 10}, {2});
  (a + b + a).backward(upstream);
  exactly(a.grad(), {2, 20});
  exactly(b.grad(), {1, 10});
  exactly(upstream, {1, 10});
}

TEST_CASE("arithmetic: [1] times [2, 2], and [2, 1] times [1, 2] (H20)") {
  const Tensor a = leaf_of({5}, {1}), b = leaf_of({1, 2, 3, 4}, {2, 2});
  backward_of_ones(a * b);
  CHECK(a.grad().shape() == Shape{1});
  exactly(a.grad(), {10});
  exactly(b.grad(), {5, 5, 5, 5});

  const Tensor column = leaf_of({1, 2}, {2, 1}), row = leaf_of({3, 4}, {1, 2});
  backward_of_ones(column * row);
  CHECK(column.grad().shape() == Shape{2, 1});
  exactly(column.grad(), {7, 7});
  CHECK(row.grad().shape() == Shape{1, 2});
  exactly(row.grad(), {3, 3});
}

TEST_CASE("arithmetic: [2, 1] plus [1, 3] (H21)") {
  const Tensor a = leaf_of({1, 2}, {2, 1}), b = leaf_of({1, 2, 3}, {1, 3});
  backward_of_ones(a + b);
  CHECK(a.grad().shape() == Shape{2, 1});
  exactly(a.grad(), {3, 3});
  CHECK(b.grad().shape() == Shape{1, 3});
  exactly(b.grad(), {2, 2, 2});
}

TEST_CASE("arithmetic: [3, 1] plus [2, 3, 4] (H22)") {
  const Tensor p = leaf_of({1, 2, 3}, {3, 1});
  backward_of_ones(p + Tensor::zeros({2, 3, 4}));
  CHECK(p.grad().shape() == Shape{3, 1});
  exactly(p.grad(), {8, 8, 8});
}

TEST_CASE("arithmetic: a dimension of size 1 that only one operand has keeps the gradient's shape") {
  const Tensor a = leaf_of({1, 2}, {2}), b = leaf_of({3, 4}, {1, 2});
  (a + b).backward(Array::of({5, 6}, {1, 2}));
  CHECK(a.grad().shape() == Shape{2});
  exactly(a.grad(), {5, 6});
  CHECK(b.grad().shape() == Shape{1, 2});
}

TEST_CASE("arithmetic: dimensions of size 0") {
  const std::pair<Shape, Shape> forms[] = {
      {{0}, {0}},      {{0, 4}, {4}}, {{0, 4}, {0, 1}},      {{2, 0}, {2, 1}},
      {{3, 0, 2}, {}}, {{0}, {1}},    {{2, 1, 3}, {2, 0, 1}}};
  for (const auto& form : forms) {
    const Shape &a_shape = form.first, &b_shape = form.second;
    CAPTURE(a_shape.text());
    CAPTURE(b_shape.text());
    Shape shape;
    REQUIRE(broadcast_shapes(a_shape, b_shape, shape));
    REQUIRE(shape.numel() == 0);
    const Tensor a = leaf(Array::full(a_shape, 2)), b = leaf(Array::full(b_shape, 3));
    const Tensor y = (a + b) * (a - b) / b;
    CHECK(y.shape() == shape);
    backward_of_ones(y);
    exactly(a.grad(), std::vector<double>(static_cast<std::size_t>(a.numel()), 0.0));
    exactly(b.grad(), std::vector<double>(static_cast<std::size_t>(b.numel()), 0.0));
  }
}

TEST_CASE("arithmetic: a zero upstream gradient stays zero beside infinite and undefined factors") {
  const auto both = [](const auto& f, double a_value, double b_value) {
    const Tensor a = leaf({a_value, a_value}), b = leaf({b_value, b_value});
    f(a, b).backward(Array::of({0, 1}, {2}));
    CHECK(a.grad().value(0) == 0);
    CHECK(b.grad().value(0) == 0);
    return std::make_pair(a.grad().value(1), b.grad().value(1));
  };
  const auto product = [](const Tensor& a, const Tensor& b) { return a * b; };
  const auto quotient = [](const Tensor& a, const Tensor& b) { return a / b; };
  CHECK(both(product, kInf, 2).second == kInf);
  CHECK(std::isnan(both(product, 1, kNan).first));
  CHECK(both(quotient, 1, 0).first == kInf);
  CHECK(both(quotient, 1, 0).second == -kInf);
  CHECK(std::isnan(both(quotient, 0, 0).second));

  const Tensor x = leaf({0, 0});
  (1.0 / x).backward(Array::of({0, 2}, {2}));
  exactly(x.grad(), {0, -kInf});
  const Tensor z = leaf({1, 1});
  (z / 0.0).backward(Array::of({0, -2}, {2}));
  exactly(z.grad(), {0, -kInf});
  const Tensor w = leaf({1, 1});
  (w * kInf).backward(Array::of({0, -2}, {2}));
  exactly(w.grad(), {0, -kInf});
}

TEST_CASE("arithmetic: the gradient of a repeated operand is summed in double") {
  const Tensor b = leaf_of({0}, {1});  // a running float32 sum gives 1
  (Tensor::zeros({4, 1}) + b).backward(Array::of({1e8, 1, -1e8, 1}, {4, 1}));
  exactly(b.grad(), {2});

  const Tensor row = leaf_of({0, 0}, {2});
  (Tensor::zeros({4, 2}) + row).backward(Array::of({1e8, 3, 1, 4, -1e8, 5, 1, 6}, {4, 2}));
  exactly(row.grad(), {2, 18});
  (Tensor::zeros({4, 2}) + row).backward(Array::of({1e8, 3, 1, 4, -1e8, 5, 1, 6}, {4, 2}));
  exactly(row.grad(), {4, 36});
}

TEST_CASE("arithmetic: the same bits for any number of threads") {
  const Tensor a = leaf(expect::normal({700, 513}, 1)), b = leaf(expect::normal({513}, 2));
  const Tensor c = leaf(expect::normal({700, 1}, 3));
  const int before = thread_count();
  std::vector<Array> first;
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    for (Tensor each : {a, b, c}) each.zero_grad();
    const Tensor y = (a * b + c) / (b - 10.0);
    y.backward(expect::normal(y.shape(), 4));
    const std::vector<Array> all = {y.array(), a.grad().copy(), b.grad().copy(), c.grad().copy()};
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(expect::same_bits(first[i], all[i]));
  }
  set_thread_count(before);
}

TEST_CASE("arithmetic: only the factors that backward needs are kept") {
  const Tensor w = leaf({1, 2}), x = Tensor::of({3, 4});
  CHECK((w * x).node().has_saved("b"));
  CHECK_FALSE((w * x).node().has_saved("a"));
  CHECK((w + x).node().saved_arrays().size() == 0);
  CHECK_FALSE((w / x).node().has_saved("y"));
  CHECK((x / w).node().has_saved("y"));
}

TEST_CASE("arithmetic: what does not fit is named with both operands") {
  CHECK(expect::message<ShapeError>([] {
          mul(Tensor::zeros({2, 3}), Tensor::zeros({4}));
        }) ==
        "mul: shapes must broadcast (aligned at the end, sizes equal or 1), got [2, 3] and [4]\n"
        "  a [2, 3]   b [4]");
  CHECK_THROWS_AS(Tensor::zeros({0}) + Tensor::zeros({2}), ShapeError);
  CHECK_THROWS_AS(Tensor::zeros({2}) - Tensor::zeros({2}, DType::float64), DTypeError);
  CHECK_THROWS_AS(Tensor::zeros({2}) + Tensor(), DTypeError);
  CHECK_THROWS_AS(Tensor() * 2.0, DTypeError);
}
