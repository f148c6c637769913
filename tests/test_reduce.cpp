// sum, mean, var and max over any set of dimensions, against the plainest loop there is.
#include <algorithm>
#include <limits>

#include "expect.h"
#include "handgrad/core/error.h"
#include "handgrad/core/ops.h"

using namespace handgrad;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// For every result, kept dimensions in order, the positions of its elements in x.
std::vector<std::vector<std::int64_t>> positions_by_result(const Shape& shape, const Dims& dims) {
  bool reduced[Shape::kMaxRank] = {};
  for (const std::int64_t dim : dims) reduced[dim < 0 ? dim + shape.rank() : dim] = true;
  std::int64_t results = 1;
  for (int i = 0; i < shape.rank(); ++i) results *= reduced[i] ? 1 : shape[i];
  std::vector<std::vector<std::int64_t>> all(static_cast<std::size_t>(results));
  for (std::int64_t position = 0; position < shape.numel(); ++position) {
    std::int64_t rest = position, result = 0, step = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      const std::int64_t index = rest % shape[i];
      rest /= shape[i];
      if (reduced[i]) continue;
      result += index * step;
      step *= shape[i];
    }
    all[static_cast<std::size_t>(result)].push_back(position);
  }
  return all;
}

struct Expected {
  std::vector<double> sum, mean, biased, unbiased, max;
};

Expected plainly(const Array& x, const Dims& dims) {
  Expected all;
  const std::vector<double> values = x.values();
  for (const auto& positions : positions_by_result(x.shape(), dims)) {
    const auto n = static_cast<double>(positions.size());
    double sum = 0, squares = 0, max = -kInfinity;
    for (const std::int64_t i : positions) sum += values[static_cast<std::size_t>(i)];
    for (const std::int64_t i : positions) {
      squares += std::pow(values[static_cast<std::size_t>(i)] - sum / n, 2);
      max = std::max(max, values[static_cast<std::size_t>(i)]);
    }
    all.sum.push_back(sum);
    all.mean.push_back(sum / n);
    all.biased.push_back(squares / n);
    all.unbiased.push_back(squares / (n - 1));
    all.max.push_back(max);
  }
  return all;
}

void check_against_plain_loop(const Shape& shape, const Dims& dims) {
  INFO(shape.text(), " over ", dims.text());
  const Tensor x = Tensor::constant(expect::normal(shape, 7, DType::float64, 3, 2));
  const Expected expected = plainly(x.array(), dims);
  constexpr double kRounding = 1e-12;
  expect::near(sum(x, dims), expected.sum, kRounding, kRounding);
  expect::near(mean(x, dims), expected.mean, kRounding, kRounding);
  expect::near(var(x, dims), expected.biased, kRounding, kRounding);
  expect::near(var(x, dims, KeepDim::no, Variance::unbiased), expected.unbiased, kRounding, kRounding);
  expect::exactly(max(x, dims), expected.max);
}

}  // namespace

TEST_CASE("reduce: every set of dimensions of a small shape") {
  const Shape shape = {2, 3, 1, 4, 2};
  for (unsigned set = 1; set < 32; ++set) {
    Shape dims;
    for (int i = 0; i < 5; ++i)
      if ((set >> i & 1) != 0) dims.push_back(i);
    if (shape.numel() / 2 < 2 || dims == Shape{2}) continue;  // nothing to take an unbiased variance of
    check_against_plain_loop(shape, Dims(dims));
  }
}

TEST_CASE("reduce: shapes large enough to be cut into parts") {
  check_against_plain_loop({100003}, {0});
  check_against_plain_loop({100003, 1}, {0, 1});
  check_against_plain_loop({2, 60000}, {0});  // cut by columns
  check_against_plain_loop({3000, 33}, {0});  // partial sums
  check_against_plain_loop({3000, 33}, {1});
  check_against_plain_loop({300, 7, 53}, {1});
  check_against_plain_loop({300, 7, 53}, {0, 2});  // partial sums of interleaved runs
  check_against_plain_loop({5, 40, 11, 41}, {0, 2});
  check_against_plain_loop({5, 40, 11, 41}, {1, 3});
  check_against_plain_loop({2, 3, 5, 7, 11, 41}, {0, 2, 4});
}

TEST_CASE("reduce: gradients of large shapes reach every element") {
  for (const auto& form : {std::pair<Shape, Dims>{{100003}, {0}},
                           {{2, 60000}, {0}},
                           {{3000, 33}, {0}},
                           {{3000, 33}, {1}},
                           {{300, 7, 53}, {0, 2}}}) {
    const Shape& shape = form.first;
    const Dims& dims = form.second;
    INFO(shape.text(), " over ", dims.text());
    const auto groups = positions_by_result(shape, dims);
    Tensor x = expect::leaf(expect::normal(shape, 8, DType::float64));
    const std::vector<double> values = x.values();
    const auto gradient_of = [&](const Tensor& y) {
      x.zero_grad();
      Random random(9);
      const Array dy = expect::normal_array(y.shape(), 0, 1, random, DType::float64);
      y.backward(dy, RetainGraph::yes);
      y.backward(dy);  // adds to what is there
      return std::pair(x.grad().values(), dy.values());
    };
    const auto [d_sum, sum_dy] = gradient_of(sum(x, dims));
    const auto [d_mean, mean_dy] = gradient_of(mean(x, dims));
    const auto [d_var, var_dy] = gradient_of(var(x, dims));
    const auto [d_max, max_dy] = gradient_of(max(x, dims));
    const Expected expected = plainly(x.array(), dims);
    double worst = 0;
    for (std::size_t result = 0; result < groups.size(); ++result) {
      const auto n = static_cast<double>(groups[result].size());
      for (const std::int64_t position : groups[result]) {
        const auto i = static_cast<std::size_t>(position);
        const double slope = 2 * (values[i] - expected.mean[result]) / n;
        worst = std::max(worst, std::abs(d_sum[i] - 2 * sum_dy[result]));
        worst = std::max(worst, std::abs(d_mean[i] - 2 * mean_dy[result] / n));
        worst = std::max(worst, std::abs(d_var[i] - 2 * var_dy[result] * slope));
        worst = std::max(worst,
                         std::abs(d_max[i] - (values[i] == expected.max[result] ? 2 * max_dy[result] : 0)));
      }
    }
    CHECK(worst < 1e-12);
  }
}

TEST_CASE("reduce: shapes with and without the reduced dimensions") {
  const Tensor x = Tensor::zeros({2, 3, 4});
  CHECK(sum(x).shape() == Shape{});
  CHECK(sum(x, -1).shape() == Shape{2, 3});
  CHECK(mean(x, -1, KeepDim::yes).shape() == Shape{2, 3, 1});
  CHECK(var(x, {0, 2}).shape() == Shape{3});
  CHECK(max(x, {0, 2}, KeepDim::yes).shape() == Shape{1, 3, 1});
  CHECK(sum(x, {2, 0, 1}).shape() == Shape{});
  CHECK(mean(Tensor::zeros({2, 4, 768}), -1, KeepDim::yes).shape() == Shape{2, 4, 1});
}

TEST_CASE("reduce: the seed's row and its variance") {
  const Tensor x = Tensor::of({2, 2, 6, 6});
  CHECK(mean(x).item() == 4);
  CHECK(var(x, -1).item() == 4);
  CHECK(var(x, -1, KeepDim::no, Variance::unbiased).item() == doctest::Approx(16.0 / 3));
}

TEST_CASE("reduce: a variance far from zero keeps its digits") {
  CHECK(var(Tensor::of({10002, 10002, 10006, 10006}), -1).item() == 4);
  CHECK(var(Tensor::of({1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3}), -1).item() == 1.25);
  const Tensor columns = Tensor::of({{1e6, 5}, {1e6 + 2, 5}});
  expect::exactly(var(columns, {0}), {1, 0});
}

TEST_CASE("reduce: sums accumulate in double, in rows, columns and parts (H15)") {
  const std::vector<double> spread = {1e8, 1, -1e8, 1};
  CHECK(sum(Tensor::of(spread, {4})).item() == 2);
  CHECK(sum(Tensor::of(spread, {4, 1}), {0}).item() == 2);
  CHECK(sum(Tensor::of(spread, {2, 1, 2}), {0, 2}).item() == 2);
  // A running sum in float32 stops at 2^24.
  CHECK(sum(Tensor::ones({40'000'000})).item() == 40'000'000);
  CHECK(mean(Tensor::full({3'000'000, 2}, 0.1F), {0}).values() ==
        std::vector<double>(2, static_cast<double>(0.1F)));
}

TEST_CASE("reduce: max gives its gradient to the first of equals (H24)") {
  const Tensor x = expect::leaf({1, 3, 3});
  const Tensor y = max(x);
  CHECK(y.item() == 3);
  y.backward();
  CHECK(x.grad().values() == std::vector<double>{0, 1, 0});

  const Tensor z = expect::leaf(Array::of({5, 1, 5, 5, 1, 5}, {2, 3}));
  max(z, {0}).backward(Array::of({1, 2, 4}, {3}));
  CHECK(z.grad().values() == std::vector<double>{1, 2, 4, 0, 0, 0});

  // Equal ones in different parts of a large tensor, and in different stretches of a row.
  Array large({200'000});
  large.fill(-1);
  for (const std::int64_t i : {70'001, 70'002, 150'000}) large.mutable_data<float>()[i] = 2;
  const Tensor w = expect::leaf(large);
  max(w).backward();
  CHECK(w.grad().value(70'001) == 1);
  CHECK(sum(Tensor::constant(w.grad())).item() == 1);
}

TEST_CASE("reduce: the first NaN is the largest of all") {
  const Tensor x = expect::leaf({1, kNaN, kInfinity, kNaN});
  const Tensor y = max(x);
  CHECK(std::isnan(y.item()));
  y.backward();
  CHECK(x.grad().values() == std::vector<double>{0, 1, 0, 0});
  for (const std::int64_t place : {0, 255, 256, 900}) {
    Array row({1000});
    row.fill(1);
    row.mutable_data<float>()[place] = static_cast<float>(kNaN);
    row.mutable_data<float>()[950] = static_cast<float>(kNaN);
    const Tensor r = expect::leaf(row);
    max(r).backward();
    CHECK(r.grad().value(place) == 1);
    const Tensor column = expect::leaf(row.reshape({1000, 1}));
    max(stack({column, column}, 1), {0}).backward(Array::full({2, 1}, 1));
    CHECK(column.grad().value(place) == 2);
  }
  expect::exactly(max(Tensor::of({{-kInfinity, -kInfinity}, {-kInfinity, 3}}), {1}), {-kInfinity, 3});
}

TEST_CASE("reduce: NaN and infinity stay in their rows") {
  const Tensor x = Tensor::of({{1, kNaN}, {1, 2}, {kInfinity, 1}, {kInfinity, -kInfinity}});
  expect::exactly(sum(x, -1), {kNaN, 3, kInfinity, kNaN});
  expect::exactly(mean(x, -1), {kNaN, 1.5, kInfinity, kNaN});
  expect::exactly(var(x, -1), {kNaN, 0.25, kNaN, kNaN});
}

TEST_CASE("reduce: of no elements") {
  const Tensor x = Tensor::zeros({0, 4}).requires_grad();
  expect::exactly(sum(x), {0});
  expect::exactly(sum(x, {0}), {0, 0, 0, 0});
  expect::exactly(mean(x, {0}), {kNaN, kNaN, kNaN, kNaN});
  expect::exactly(var(x, {0}), {kNaN, kNaN, kNaN, kNaN});
  expect::exactly(var(Tensor::of({3}), {0}, KeepDim::no, Variance::unbiased), {kNaN});
  CHECK(sum(x, {1}).shape() == Shape{0});
  CHECK(max(x, {1}).shape() == Shape{0});
  CHECK(expect::message<ShapeError>([&] { max(x, {0}); }) ==
        "max: there must be an element to each result, got none along dims [0]\n  x [0, 4]");
  CHECK_THROWS_AS(max(x), ShapeError);
  (sum(x) + sum(mean(x, {0}))).backward();
  CHECK(x.grad().shape() == Shape{0, 4});
}

TEST_CASE("reduce: a variance without meaning and a zero upstream gradient give zero") {
  const Tensor x = expect::leaf({3});
  (var(x, {0}, KeepDim::no, Variance::unbiased) * 0.0).backward();
  CHECK(x.grad().item() == 0);
}

TEST_CASE("reduce: wrong dimensions are errors that name them") {
  const Tensor x = Tensor::zeros({2, 3, 4});
  CHECK(expect::message<ShapeError>([&] {
          mean(x, {0, 3});
        }) == "mean: dimension must lie in -3..2, got 3\n  x [2, 3, 4]");
  CHECK(expect::message<ShapeError>([&] {
          var(x, {1, -2});
        }) == "var: dims must name each dimension once, got [1, -2]\n  x [2, 3, 4]");
  CHECK(expect::message<ShapeError>([&] { sum(x, Dims(Shape{})); }) ==
        "sum: dims must name at least one dimension, got []\n  x [2, 3, 4]\n"
        "  try: leave dims out to reduce over all of them");
}
