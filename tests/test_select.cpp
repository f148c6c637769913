// Masks, and what picks, orders and compares.
#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/gradcheck.h"
#include "handgrad/core/ops.h"

using namespace handgrad;
using expect::exactly;
using expect::leaf;
using Ints = std::vector<std::int32_t>;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("where: the branch that was not taken stays silent (H25)") {
  const Tensor a = leaf({100});
  const Tensor y = where(a <= 0, exp(a), 1.0 + a);
  exactly(y, {101});
  y.backward();
  exactly(a.grad(), {1});
}

TEST_CASE("where: all three operands broadcast, and gradients go to the chosen one") {
  const Tensor condition = Tensor::of({1, 0, kNan}), a = leaf(Array::of({1, 2}, {2, 1})),
               b = leaf(Array::of({7}, {}));
  const Tensor y = where(condition, a, b);
  CHECK(y.shape() == Shape{2, 3});
  exactly(y, {1, 7, 1, 2, 7, 2});
  y.backward(Array::of({1, 2, 3, 4, 5, 6}, {2, 3}));
  exactly(a.grad(), {4, 10});
  CHECK(a.grad().shape() == Shape{2, 1});
  exactly(b.grad(), {7});
}

TEST_CASE("where: a tensor on both sides, and nothing at all") {
  const Tensor a = leaf({1, 2});
  where(Tensor::of({1, 0}), a, a).backward(Array::of({3, 4}, {2}));
  exactly(a.grad(), {3, 4});
  CHECK(where(Tensor::zeros({0, 2}), Tensor::zeros({2}), Tensor::zeros({1})).shape() == Shape{0, 2});
  CHECK(expect::message<ShapeError>(
            [] { where(Tensor::zeros({2}), Tensor::zeros({3}), Tensor::zeros({1})); }) ==
        "where: shapes must broadcast (aligned at the end, sizes equal or 1), got [2], [3] and [1]\n"
        "  condition [2]   a [3]   b [1]");
}

TEST_CASE("masked_fill: values and gradient") {
  const Tensor x = leaf(Array::of({1, 2, 3, 4}, {2, 2})), mask = Tensor::of({{0, 1}, {0, 0}});
  const Tensor y = masked_fill(x, mask, -kInf);
  exactly(y, {1, -kInf, 3, 4});
  y.backward(Array::of({1, kNan, 3, 4}, {2, 2}));
  exactly(x.grad(), {1, 0, 3, 4});
}

TEST_CASE("masked_fill: the mask broadcasts to x but not x to the mask") {
  const Tensor x = leaf(Array::of({1, 2, 3, 4}, {2, 2}));
  exactly(masked_fill(x, Tensor::of({1, 0}), 9), {9, 2, 9, 4});
  exactly(masked_fill(x, Tensor::of({0, 1}, Shape{2, 1}), 9), {1, 2, 9, 9});
  CHECK(expect::message<ShapeError>([&] {
          masked_fill(x, Tensor::zeros({3, 2, 2}), 0);
        }) ==
        "masked_fill: mask must broadcast to the shape of x, [2, 2], got [3, 2, 2]\n"
        "  x [2, 2]   mask [3, 2, 2]");
  CHECK_THROWS_AS(masked_fill(x, Tensor::zeros({3}), 0), ShapeError);
}

TEST_CASE("masks: whatever is not 0 counts as set, below 0 and NaN too") {
  const Tensor mask = Tensor::of({-1, 0, 0.25, -0.0, kNan}), x = leaf({1, 2, 3, 4, 5});
  exactly(masked_fill(x, mask, 9), {9, 2, 9, 4, 9});
  const Tensor y = where(mask, x, Tensor::of({-1, -2, -3, -4, -5}));
  exactly(y, {1, -2, 3, -4, 5});
  y.backward(Array::full({5}, 1));
  exactly(x.grad(), {1, 0, 1, 0, 1});
}

TEST_CASE("comparisons: 1 and 0, and NaN is neither more nor less nor equal") {
  const Tensor a = Tensor::of({1, 2, 3, kNan}), b = Tensor::of({2, 2, 2, 2});
  exactly(a > b, {0, 0, 1, 0});
  exactly(a < b, {1, 0, 0, 0});
  exactly(a >= b, {0, 1, 1, 0});
  exactly(a <= b, {1, 1, 0, 0});
  exactly(equal(a, b), {0, 1, 0, 0});
  exactly(a > 2, {0, 0, 1, 0});
  exactly(a < 2, {1, 0, 0, 0});
  exactly(a >= 2, {0, 1, 1, 0});
  exactly(a <= 2, {1, 1, 0, 0});
  exactly(equal(a, 2), {0, 1, 0, 0});
  exactly(equal(a, a), {1, 1, 1, 0});
  const Tensor grid = Tensor::of({0, 1}, Shape{2, 1}) >= arange(2);
  CHECK(grid.shape() == Shape{2, 2});
  exactly(grid, {1, 0, 1, 1});
  CHECK_THROWS_AS(static_cast<void>(a > Tensor::zeros({3})), ShapeError);
}

TEST_CASE("comparisons: a backward through one is an error that says so") {
  const Tensor x = leaf({1, 2});
  const Tensor y = sum((x > 1.5) * x);
  const std::string text = expect::message<GraphError>([&] { y.backward(); });
  CHECK(text.find("operator> has no gradient") != std::string::npos);
  sum((x > 1.5).detach() * x).backward();
  exactly(x.grad(), {0, 1});
}

TEST_CASE("argmax: the first of equals, the first NaN, any dimension (H24)") {
  CHECK(argmax(Tensor::of({1, 3, 3})).values() == Ints{1});
  CHECK(argmax(Tensor::of({1, kNan, 3, kNan})).values() == Ints{1});
  CHECK(argmax(Tensor::of({-kInf, -kInf})).values() == Ints{0});
  const Tensor x = Tensor::of({{1, 5, 2}, {4, 0, 2}});
  CHECK(argmax(x).values() == Ints{1, 0});
  CHECK(argmax(x, 0).values() == Ints{1, 0, 0});
  CHECK(argmax(x, -2).shape() == Shape{3});
  CHECK(argmax(Tensor::zeros({0, 3})).shape() == Shape{0});
  CHECK_THROWS_AS(argmax(Tensor::zeros({3, 0})), ShapeError);
  CHECK_THROWS_AS(argmax(x, 2), ShapeError);
  CHECK(argmax(Tensor::of({1, 9, 2, 3, 4, 5, 8, 7}, {2, 2, 2}), 1).values() == Ints{1, 0, 1, 1});
}

TEST_CASE("topk: falling, equals in order, NaN in front") {
  const auto [values, positions] = topk(Tensor::of({3, kNan, 7, 3, 9, 7}), 5);
  exactly(values, {kNan, 9, 7, 7, 3});
  CHECK(positions.values() == Ints{1, 4, 2, 5, 0});
  const auto [rows, where_found] = topk(Tensor::of({{1, 2, 3}, {6, 5, 4}}), 2);
  CHECK(rows.shape() == Shape{2, 2});
  exactly(rows, {3, 2, 6, 5});
  CHECK(where_found.values() == Ints{2, 1, 0, 1});
  CHECK(topk(Tensor::zeros({2, 3}), 0).first.shape() == Shape{2, 0});
  CHECK(expect::message<ValueError>([] {
          topk(Tensor::zeros({2, 3}), 4);
        }) == "topk: k must lie in 0..3, the last dimension of x, got 4\n  x [2, 3]");
  CHECK_THROWS_AS(topk(Tensor::scalar(1), 1), ShapeError);
}

TEST_CASE("slice: positions from the front and from the end") {
  const Tensor x = Tensor::of({0, 1, 2, 3, 4});
  exactly(slice(x, 0, 1, 3), {1, 2});
  exactly(slice(x, 0, -1, 5), {4});
  exactly(slice(x, 0, -4, -1), {1, 2, 3});
  CHECK(slice(x, 0, -5, -5).shape() == Shape{0});
}

TEST_CASE("triangles: the causal mask of the book, and other diagonals") {
  exactly(triu(Tensor::ones({3, 3}), 1), {0, 1, 1, 0, 0, 1, 0, 0, 0});
  exactly(tril(Tensor::ones({3, 3})), {1, 0, 0, 1, 1, 0, 1, 1, 1});
  exactly(triu(Tensor::of({{1, 2, 3}, {4, 5, 6}})), {1, 2, 3, 0, 5, 6});
  exactly(tril(Tensor::of({{1, 2, 3}, {4, 5, 6}}), -1), {0, 0, 0, 4, 0, 0});
  exactly(tril(Tensor::of({1, 2, 3, 4, kNan, kInf, 7, 8}, {2, 2, 2})), {1, 0, 3, 4, kNan, 0, 7, 8});
  CHECK(triu(Tensor::zeros({2, 0, 3})).shape() == Shape{2, 0, 3});
  CHECK_THROWS_AS(triu(Tensor::ones({3})), ShapeError);
}

TEST_CASE("arange: numbers and ids") {
  exactly(arange(4), {0, 1, 2, 3});
  CHECK(arange(2, DType::float64).dtype() == DType::float64);
  CHECK(arange(0).shape() == Shape{0});
  CHECK(arange_ids(3).values() == Ints{0, 1, 2});
  CHECK_THROWS_AS(arange(-1), ValueError);
  CHECK_THROWS_AS(arange_ids(-1), ValueError);
  CHECK_THROWS_AS(arange(3, DType::int32), DTypeError);
}
