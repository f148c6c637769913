#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"

using namespace handgrad;
using expect::exactly;
using expect::leaf;
using expect::near;
using expect::normal;
using expect::same_bits;
using expect::within_ulps;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN();

/// layer_norm over the last dimension with scale 1 and shift 0, in x's type.
Tensor plain(const Tensor& x, double eps = 1e-5) {
  const Shape features{x.size(-1)};
  return layer_norm(x, Tensor::ones(features, x.dtype()), Tensor::zeros(features, x.dtype()), eps);
}

struct Gradients {
  Array y, dx, dscale, dshift;
};

using Norm = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, double);

Gradients run(Norm norm, const Array& x, const Array& scale, const Array& shift, const Array& dy,
              double eps = 1e-5) {
  const Tensor tx = leaf(x), tscale = leaf(scale), tshift = leaf(shift);
  const Tensor y = norm(tx, tscale, tshift, eps);
  y.backward(dy);
  return {y.array(), tx.grad(), tscale.grad(), tshift.grad()};
}

Gradients run(const Array& x, const Array& dy, double eps = 1e-5) {
  const Shape features{x.shape().last()};
  return run(layer_norm, x, Array::full(features, 1, x.dtype()), Array::zeros(features, x.dtype()), dy, eps);
}

Array of(const std::vector<double>& values, const Shape& shape) { return Array::of(values, shape); }

}  // namespace

// ---- Four numbers by hand

TEST_CASE("layer_norm: every line of [2, 2, 6, 6] by hand") {
  const Tensor x = Tensor::of({2, 2, 6, 6});
  const Tensor average = mean(x, kLast, KeepDim::yes);
  exactly(average, {4});
  const Tensor centered = x - average;
  exactly(centered, {-2, -2, 2, 2});
  const Tensor squared = square(centered);
  exactly(squared, {4, 4, 4, 4});
  const Tensor variance = var(x, kLast, KeepDim::yes);
  exactly(variance, {4});
  exactly(sqrt(variance), {2});
  exactly(plain(x, 0), {-1, -1, 1, 1});
  exactly(layer_norm_composed(x, Tensor::ones({4}), Tensor::zeros({4}), 0), {-1, -1, 1, 1});

  near(plain(x), {-0.99999875, -0.99999875, 0.99999875, 0.99999875}, 6e-8, 0);
  exactly(plain(Tensor::of({10, 10, 14, 14}), 0), {-1, -1, 1, 1});
  CHECK(same_bits(plain(Tensor::of({10, 10, 14, 14})).array(), plain(x).array()));
}

TEST_CASE("layer_norm: the gradients of output 0 of [2, 2, 6, 6]") {
  const Array x = of({2, 2, 6, 6}, {4}), dy = of({1, 0, 0, 0}, {4});
  const Gradients g = run(x, dy, 0);
  exactly(g.dx, {0.25, -0.25, 0, 0});
  exactly(g.dscale, {-1, 0, 0, 0});
  exactly(g.dshift, {1, 0, 0, 0});

  const Gradients with_eps = run(x, dy);
  near(with_eps.dx, {0.25, -0.249999375, -3.125e-7, -3.125e-7}, 3e-8, 0);
  near(with_eps.dscale, {-0.99999875, 0, 0, 0}, 6e-8, 0);
}

TEST_CASE("layer_norm: what it saves can be read by name, one number for each row") {
  const Tensor x = leaf(normal({2, 4, 768}, 1, DType::float32, 3, 2));
  const Tensor scale = leaf(Array::full({768}, 1)), shift = leaf(Array::zeros({768}));
  const Tensor y = layer_norm(x, scale, shift);
  CHECK(y.shape() == Shape{2, 4, 768});
  CHECK(y.node().saved("mean").shape() == Shape{2, 4, 1});
  CHECK(y.node().saved("rstd").shape() == Shape{2, 4, 1});
  CHECK(mean(x, kLast, KeepDim::yes).shape() == Shape{2, 4, 1});
  CHECK(var(x, kLast, KeepDim::yes).shape() == Shape{2, 4, 1});
  near(y.node().saved("mean"), mean(x, kLast, KeepDim::yes).values());
  near(y.node().saved("rstd"), rsqrt(var(x, kLast, KeepDim::yes) + 1e-5).values());
  CHECK(y.node().number("eps") == 1e-5);
  CHECK(same_bits(y.node().saved("x"), x.array()));

  // Each row alone: mean 0 and variance 1.
  near(mean(y, kLast), std::vector<double>(8, 0.0), 1e-6, 0);
  near(var(y, kLast), std::vector<double>(8, 1.0), 1e-5, 0);
}

TEST_CASE("layer_norm: scale and shift act on the normalized row") {
  const Tensor x = Tensor::of({2, 2, 6, 6});
  const Tensor y = layer_norm(x, Tensor::of({1, 2, 3, -1}), Tensor::of({0, 1, 0.5, 0.25}), 0);
  exactly(y, {-1, -1, 3.5, -0.75});
}

// ---- Numerics that broke elsewhere

TEST_CASE("layer_norm: a mean of a million does not eat the variance (H01)") {
  near(plain(Tensor::of({1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3})),
       {-1.34163542, -0.44721181, 0.44721181, 1.34163542});
  // The mean, 1000002.2, is not a float32.
  near(plain(Tensor::of({1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3, 1e6 + 5})),
       {-1.278722014, -0.6974847348, -0.1162474558, 0.4649898232, 1.627464381});
  near(plain(Tensor::of({10002, 10002, 10006, 10006})), {-0.99999875, -0.99999875, 0.99999875, 0.99999875});
}

TEST_CASE("layer_norm: small distances from 100 (H02)") {
  std::vector<double> x, expected;
  for (int i = 0; i < 512; ++i) {
    x.insert(x.end(), {100.01, 99.99});
    expected.insert(expected.end(), {0.953481, -0.953481});
  }
  near(plain(Tensor::of(x, {1024})), expected);
}

TEST_CASE("layer_norm: a small variance is not clamped (H03)") {
  near(plain(Tensor::of({-9.9e-4, -9.9e-4, 9.9e-4, 9.9e-4}), 1e-12),
       {-0.99999949, -0.99999949, 0.99999949, 0.99999949});
}

TEST_CASE("layer_norm: equal numbers give exactly the shift (H04)") {
  exactly(plain(Tensor::of({14, 14}), 1e-6), {0, 0});
  const Tensor shift = Tensor::of({0.1, -7});
  CHECK(same_bits(layer_norm(Tensor::of({14, 14}), Tensor::of({3, 5}), shift, 1e-6).array(), shift.array()));
  exactly(plain(Tensor::full({3, 37}, 0.1f)), std::vector<double>(3 * 37, 0.0));
}

TEST_CASE("layer_norm: equal numbers whose product with 1 / deviation is beyond float32 have a gradient") {
  // 1e38 / sqrt(1e-5) overflows, but only the distance from the mean, 0, is multiplied.
  const Tensor x = leaf(Array::full({1, 5}, 1e38)), scale = Tensor::of({1, 2, 3, -1, 0});
  const Tensor y = layer_norm(x, scale, Tensor::zeros({5}), 1e-5);
  exactly(y, std::vector<double>(5, 0.0));
  y.backward(Array::of({1, -1, 2, 3, 4}, {1, 5}));
  const double rstd = 1 / std::sqrt(1e-5);  // g = 1, -2, 6, -3, 0 with mean 0.4
  near(x.grad(), {0.6 * rstd, -2.4 * rstd, 5.6 * rstd, -3.4 * rstd, -0.4 * rstd});
}

TEST_CASE("layer_norm: one feature (H05)") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Gradients g = run(layer_norm, Array::full({1, 1}, 1e6, dtype), Array::full({1}, 2, dtype),
                            Array::full({1}, 3, dtype), Array::full({1, 1}, 1, dtype));
    exactly(g.y, {3});
    exactly(g.dx, {0});
    exactly(g.dscale, {0});
    exactly(g.dshift, {1});
  }
}

TEST_CASE("layer_norm: squares beyond float32, and distances below it (H06)") {
  near(plain(Tensor::of({1e30, -1e30})), {1, -1});
  near(plain(Tensor::of({3e38, -3e38, 3e38, -3e38})), {1, -1, 1, -1});
  near(plain(Tensor::of({1e-30, -1e-30}), 0), {1, -1});
  // The gradient of such a row: rstd * (g - mean(g) - xhat * mean(g * xhat)) with rstd 1e-30.
  const Gradients g = run(of({3e30, -1e30, -1e30, -1e30}, {4}), of({1, 2, 3, 4}, {4}));
  near(g.dx, {0, -5.7735027e-31, 0, 5.7735027e-31}, 1e-37, 1e-5);
  near(g.dscale, {1.7320508, -1.1547005, -1.7320508, -2.3094011});
  near(layer_norm(Tensor::of({1e30, -1e30}), Tensor::of({2, 3}), Tensor::of({0.5, -1}), 1e-5), {2.5, -4});
  const Tensor x = leaf(of({3e30, -1e30, -1e30, -1e30}, {4}));
  for (int pass = 0; pass < 2; ++pass) plain(x).backward(of({1, 2, 3, 4}, {4}));
  near(x.grad(), {0, -1.15470054e-30, 0, 1.15470054e-30}, 1e-36, 1e-5);
}

TEST_CASE("layer_norm: the variance is biased (H07)") {
  near(plain(Tensor::of({0, 2})), {-0.999995, 0.999995});
  near(plain(Tensor::of({1, 2, 4})), {-1.06904153, -0.26726038, 1.33630191});
}

TEST_CASE("layer_norm: the gradient at a row of zeros is finite (H08)") {
  const Gradients g = run(of({0, 0, 0, 0}, {4}), of({1, 2, 3, 4}, {4}));
  near(g.dx, {-474.341649, -158.113883, 158.113883, 474.341649});
  exactly(g.dscale, {0, 0, 0, 0});
  exactly(g.dshift, {1, 2, 3, 4});
}

TEST_CASE("layer_norm: a uniform upstream gives no dx, a real probe does (H09)") {
  near(run(of({1, 2, 4}, {3}), of({1, 1, 1}, {3})).dx, {0, 0, 0}, 1e-7, 0);
  const Gradients g = run(of({1, 2, 4}, {3}), of({1, 0, 0}, {3}));
  near(g.dx, {0.22908229, -0.34362000, 0.11453771});
  near(g.dscale, {-1.06904153, 0, 0});
}

TEST_CASE("layer_norm: three dimensions, and a row of equal numbers (H10)") {
  const Gradients g = run(of({1, 2, 4, 4, 2, 1, 0, 0, 3, 5, 5, 5}, {2, 2, 3}), Array::full({2, 2, 3}, 1));
  near(g.dscale, {-0.43984463, -1.24162578, 1.68147041});
  exactly(g.dshift, {4, 4, 4});
  CHECK(g.dscale.shape() == Shape{3});
  near(g.dx, std::vector<double>(12, 0.0), 1e-4, 0);  // rounding times rstd = 316 in the last row
}

TEST_CASE("layer_norm: of a transpose (H11)") {
  const Tensor x = transpose(Tensor::of({{1, 2}, {3, 5}, {9, 10}}), 0, 1);
  const Tensor y = plain(x);
  near(y, {-0.98058025, -0.39223210, 1.37281235, -1.11116729, -0.20203042, 1.31319770});
  CHECK(same_bits(y.array(), plain(Tensor::of({{1, 3, 9}, {2, 5, 10}})).array()));
}

TEST_CASE("layer_norm: no rows, no features (H12)") {
  const Gradients g = run(Array::zeros({0, 4}), Array::zeros({0, 4}));
  CHECK(g.y.shape() == Shape{0, 4});
  CHECK(g.dx.shape() == Shape{0, 4});
  exactly(g.dscale, {0, 0, 0, 0});
  exactly(g.dshift, {0, 0, 0, 0});
  const Gradients none = run(Array::zeros({3, 0}), Array::zeros({3, 0}));
  CHECK(none.y.shape() == Shape{3, 0});
  CHECK(none.dscale.shape() == Shape{0});
}

TEST_CASE("layer_norm: a row never depends on other rows (H13)") {
  const Array two_hundred = normal({200, 48}, 5);
  Array hundred({100, 48}), one({1, 48});
  std::copy_n(two_hundred.data<float>(), 100 * 48, hundred.mutable_data<float>());
  std::copy_n(two_hundred.data<float>(), 48, one.mutable_data<float>());
  const Tensor all = plain(Tensor::constant(two_hundred));
  CHECK(same_bits(slice(all, 0, 0, 100).array(), plain(Tensor::constant(hundred)).array()));
  CHECK(same_bits(slice(all, 0, 0, 1).array(), plain(Tensor::constant(one)).array()));
}

TEST_CASE("layer_norm: NaN stays in its row, forward and backward (H14)") {
  const Gradients g = run(of({1, 2, kNaN, 1, 2, 4}, {2, 3}), of({1, 0, 0, 1, 0, 0}, {2, 3}));
  const Gradients alone = run(of({1, 2, 4}, {1, 3}), of({1, 0, 0}, {1, 3}));
  for (int i = 0; i < 3; ++i) {
    CHECK(std::isnan(g.y.value(i)));
    CHECK(std::isnan(g.dx.value(i)));
    CHECK(g.y.value(3 + i) == alone.y.value(i));
    CHECK(g.dx.value(3 + i) == alone.dx.value(i));
  }
  near(alone.y, {-1.06904153, -0.26726038, 1.33630191});
}

TEST_CASE("layer_norm: sums over rows are wide (H15)") {
  const Gradients g = run(Array::zeros({4, 1}), of({1e8, 1, -1e8, 1}, {4, 1}));
  exactly(g.dshift, {2});
  // A gradient that is already there is added to, in place.
  const Tensor x = Tensor::zeros({4, 1}), scale = Tensor::ones({1}), shift = leaf({0});
  for (int pass = 0; pass < 3; ++pass) layer_norm(x, scale, shift).backward(of({1e8, 1, -1e8, 1}, {4, 1}));
  exactly(shift.grad(), {6});
}

TEST_CASE("layer_norm: the gradients of scale and shift are sums over all rows, however they are cut") {
  constexpr std::int64_t rows = 1500, width = 200;
  const Array x = normal({rows, width}, 1), dy = normal({rows, width}, 2);
  const Gradients g = run(x, dy);
  std::vector<double> dscale(width, 0.0), dshift(width, 0.0);
  for (std::int64_t i = 0; i < rows * width; ++i) {
    dscale[static_cast<std::size_t>(i % width)] +=
        dy.value(i) * g.y.value(i);  // y is the normalized row here
    dshift[static_cast<std::size_t>(i % width)] += dy.value(i);
  }
  near(g.dscale, dscale, 1e-5, 1e-6);
  near(g.dshift, dshift, 1e-5, 1e-6);
}

TEST_CASE("layer_norm: without eps a row of equal numbers is 0 / 0, and only that row") {
  const Gradients g = run(of({5, 5, 1, 3}, {2, 2}), of({1, 2, 1, 2}, {2, 2}), 0);
  near(g.y, {kNaN, kNaN, -1, 1}, 0, 0);
  CHECK(std::isnan(g.dx.value(0)));
  near(g.dx, {kNaN, kNaN, 0, 0}, 0, 0);
}

// ---- Form

TEST_CASE("layer_norm: errors name the rule, what came, and every operand") {
  const Tensor x = Tensor::zeros({2, 4, 6});
  CHECK(expect::message<ShapeError>([&] { layer_norm(x, Tensor::ones({8}), Tensor::ones({8})); }) ==
        "layer_norm: scale must have shape [6], the last dimension of x, got [8]\n"
        "  x [2, 4, 6]   scale [8]   shift [8]");
  CHECK(expect::message<ShapeError>([&] {
          const ScopeGuard scope(scope_of("trf_blocks.3.norm1"));
          layer_norm(x, Tensor::ones({6}), Tensor::ones({2, 3}));
        }) ==
        "layer_norm: shift must have shape [6], the last dimension of x, got [2, 3]\n"
        "  x [2, 4, 6]   scale [6]   shift [2, 3]\n"
        "  in: trf_blocks.3.norm1");
  CHECK(expect::message<ShapeError>([] {
          layer_norm(Tensor::scalar(3), Tensor::ones({1}), Tensor::ones({1}));
        }) == "layer_norm: x must have at least one dimension, the features\n  x []");
  CHECK(expect::message<ValueError>([&] { layer_norm(x, Tensor::ones({6}), Tensor::ones({6}), -1e-5); }) ==
        "layer_norm: eps must be at least 0, got -1e-05\n"
        "  x [2, 4, 6]   scale [6]   shift [6]");
  CHECK_THROWS_AS(layer_norm(x, Tensor::ones({6}), Tensor::ones({6}), kNaN), ValueError);
  CHECK_THROWS_AS(layer_norm(x, Tensor::ones({6}, DType::float64), Tensor::ones({6})), DTypeError);
  CHECK_THROWS_AS(layer_norm(x, Tensor(), Tensor::ones({6})), DTypeError);
  CHECK_THROWS_AS(rms_norm(x, Tensor::ones({8})), ShapeError);
  CHECK_THROWS_AS(rms_norm(x, Tensor::ones({6}), -1), ValueError);
}

TEST_CASE("layer_norm: a gradient that is not wanted is not computed, others are the same") {
  const Array x = normal({5, 19}, 3), scale = normal({19}, 4), shift = normal({19}, 5),
              dy = normal({5, 19}, 6);
  const Gradients all = run(layer_norm, x, scale, shift, dy);
  for (int wanted = 0; wanted < 3; ++wanted) {
    Tensor in[3] = {Tensor::constant(x), Tensor::constant(scale), Tensor::constant(shift)};
    in[wanted].requires_grad();
    layer_norm(in[0], in[1], in[2]).backward(dy);
    CHECK(same_bits(in[wanted].grad(), wanted == 0 ? all.dx : wanted == 1 ? all.dscale : all.dshift));
  }
}

TEST_CASE("layer_norm: used twice on one x, twice the gradient (H28)") {
  const Array dy = normal({3, 21}, 8);
  Tensor x = leaf(normal({3, 21}, 7)), scale = leaf(normal({21}, 9)), shift = leaf(normal({21}, 10));
  layer_norm(x, scale, shift).backward(dy);
  const Array dx = x.grad().copy(), dscale = scale.grad().copy();
  x.zero_grad();
  scale.zero_grad();
  (layer_norm(x, scale, shift) + layer_norm(x, scale, shift)).backward(dy);
  CHECK(same_bits(x.grad(), (Tensor::constant(dx) * 2).array()));
  CHECK(same_bits(scale.grad(), (Tensor::constant(dscale) * 2).array()));
}

TEST_CASE("layer_norm and rms_norm: fused equals composed, values and gradients") {
  for (const Shape& shape : {Shape{4}, Shape{3, 5}, Shape{5, 17}, Shape{2, 3, 64}, Shape{7, 100}}) {
    INFO("shape ", shape.text());
    const Shape features{shape.last()};
    const auto random = [](const Shape& s, std::uint64_t seed) {
      return normal(s, seed, DType::float64, 0.5);
    };
    const Array x = random(shape, 1), scale = random(features, 2), shift = random(features, 3),
                dy = random(shape, 4);
    const Gradients fused = run(layer_norm, x, scale, shift, dy);
    const Gradients composed = run(layer_norm_composed, x, scale, shift, dy);
    within_ulps(fused.y, composed.y);
    within_ulps(fused.dx, composed.dx);
    within_ulps(fused.dscale, composed.dscale);
    within_ulps(fused.dshift, composed.dshift);

    const Norm rms = [](const Tensor& a, const Tensor& b, const Tensor& c, double eps) {
      return rms_norm(a, b, eps) + c;
    };
    const Norm rms_composed = [](const Tensor& a, const Tensor& b, const Tensor& c, double eps) {
      return rms_norm_composed(a, b, eps) + c;
    };
    const Gradients rms_fused = run(rms, x, scale, shift, dy),
                    rms_apart = run(rms_composed, x, scale, shift, dy);
    within_ulps(rms_fused.y, rms_apart.y);
    within_ulps(rms_fused.dx, rms_apart.dx);
    within_ulps(rms_fused.dscale, rms_apart.dscale);
  }
}

TEST_CASE("rms_norm: by hand") {
  const Tensor x = leaf({1, 7}), scale = leaf({1, 2});
  const Tensor y = rms_norm(x, scale, 0);  // root mean square 5
  near(y, {0.2, 2.8});
  y.backward(of({1, 0}, {2}));
  near(x.grad(), {0.2 * (1 - 0.2 * 0.1), 0.2 * (0 - 1.4 * 0.1)});
  near(scale.grad(), {0.2, 0});
  near(rms_norm(Tensor::of({1e30, -1e30}), Tensor::of({1, 1})), {1, -1});
}

TEST_CASE("layer_norm: the same bits for any number of threads") {
  const Array x = normal({1000, 260}, 1), scale = normal({260}, 2), shift = normal({260}, 3),
              dy = normal({1000, 260}, 4);
  const int before = thread_count();
  set_thread_count(1);
  const Gradients one = run(layer_norm, x, scale, shift, dy);
  for (const int threads : {2, 3}) {
    set_thread_count(threads);
    const Gradients many = run(layer_norm, x, scale, shift, dy);
    CHECK(same_bits(one.y, many.y));
    CHECK(same_bits(one.dx, many.dx));
    CHECK(same_bits(one.dscale, many.dscale));
    CHECK(same_bits(one.dshift, many.dshift));
  }
  set_thread_count(before);
}

TEST_CASE("layer_norm: every instruction set gives the same numbers") {
  const Array x = normal({6, 53}, 1, DType::float32, 2), scale = normal({53}, 2), shift = normal({53}, 3);
  const Array dy = normal({6, 53}, 4);
  Gradients first, fused;
  expect::on_each_target([&](const std::string& target) {
    const Gradients here = run(layer_norm, x, scale, shift, dy);
    if (!first.y.defined()) first = here;
    near(here.y, first.y.values());
    near(here.dx, first.dx.values());
    near(here.dscale, first.dscale.values());
    if (target == "baseline") return;  // without fused multiply-add
    if (!fused.y.defined()) fused = here;
    CHECK(same_bits(here.y, fused.y));
    CHECK(same_bits(here.dx, fused.dx));
    CHECK(same_bits(here.dscale, fused.dscale));
    CHECK(same_bits(here.dshift, fused.dshift));
  });
}
