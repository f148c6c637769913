// Powers, roots and activations as operations: values, the edges of their derivatives, what they keep.
#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/gradcheck.h"
#include "handgrad/core/ops.h"

using namespace handgrad;
using expect::exactly;
using expect::leaf;
using expect::near;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The gradient of f at x for the upstream gradient dy.
template <class F>
Array gradient(const F& f, const std::vector<double>& x, const std::vector<double>& dy,
               DType dtype = DType::float32) {
  const Shape shape{static_cast<std::int64_t>(x.size())};
  const Tensor in = leaf(Array::of(x, shape, dtype));
  f(in).backward(Array::of(dy, shape, dtype));
  return in.grad();
}

}  // namespace

TEST_CASE("functions: values of powers and roots") {
  const Tensor x = Tensor::of({0.25, 1, 4});
  exactly(square(x), {0.0625, 1, 16});
  exactly(sqrt(x), {0.5, 1, 2});
  exactly(rsqrt(x), {2, 1, 0.5});
  exactly(pow(x, 2), {0.0625, 1, 16});
  exactly(pow(x, 3), {0.015625, 1, 64});
  exactly(pow(x, 1), {0.25, 1, 4});
  exactly(pow(x, 0), {1, 1, 1});
  exactly(pow(x, -1), {4, 1, 0.25});
  exactly(pow(x, 0.5), {0.5, 1, 2});
  near(exp(x), {1.2840254167, 2.7182818285, 54.598150033});
  near(log(x), {-1.3862943611, 0, 1.3862943611});
  exactly(pow(Tensor::of({-2, 0, kNan}), 2), {4, 0, kNan});
  exactly(pow(Tensor::of({-2, 0, kNan}), 0), {1, 1, 1});
}

TEST_CASE("functions: a power with tensors on both sides broadcasts") {
  const Tensor base = leaf(Array::of({2, 3}, {2, 1})), exponent = leaf(Array::of({0, 1, 2}, {3}));
  const Tensor y = pow(base, exponent);
  CHECK(y.shape() == Shape{2, 3});
  exactly(y, {1, 2, 4, 1, 3, 9});
  y.backward(Array::full({2, 3}, 1));
  near(base.grad(), {0 + 1 + 4, 0 + 1 + 6});
  near(exponent.grad(),
       {std::log(2) + std::log(3), 2 * std::log(2) + 3 * std::log(3), 4 * std::log(2) + 9 * std::log(3)});
}

TEST_CASE("functions: powers of zero have a gradient in both places (H27)") {
  const Tensor a = leaf({0, 2}), b = leaf({1, 1});
  pow(a, b).backward(Array::of({1, 1}, {2}));
  near(a.grad(), {1, 1});
  near(b.grad(), {0, 1.38629436});
  const Tensor zero = leaf({0, 0, 0}), e = leaf({0, 2, -1});
  pow(zero, e).backward(Array::of({1, 1, 1}, {3}));
  exactly(zero.grad(), {0, 0, -kInf});
  exactly(e.grad(), {0, 0, -kInf});
}

TEST_CASE("functions: derivatives at 0 of roots and powers, for an upstream of 1 and of 0") {
  const std::vector<double> x = {0, 0}, dy = {1, 0};
  exactly(gradient([](const Tensor& v) { return sqrt(v); }, x, dy), {0, 0});
  exactly(gradient([](const Tensor& v) { return rsqrt(v); }, x, dy), {-kInf, 0});
  exactly(gradient([](const Tensor& v) { return log(v); }, x, dy), {kInf, 0});
  exactly(gradient([](const Tensor& v) { return square(v); }, x, dy), {0, 0});
  exactly(gradient([](const Tensor& v) { return pow(v, 0.5); }, x, dy), {kInf, 0});
  exactly(gradient([](const Tensor& v) { return pow(v, -1); }, x, dy), {-kInf, 0});
  exactly(gradient([](const Tensor& v) { return pow(v, 0); }, x, dy), {0, 0});
  exactly(gradient([](const Tensor& v) { return pow(v, 1); }, x, dy), {1, 0});
  exactly(gradient([](const Tensor& v) { return pow(v, 2); }, x, dy), {0, 0});
}

TEST_CASE("functions: a zero upstream gradient stays zero where the derivative is not a number") {
  const std::vector<double> dy = {0, 0, 0, 0};
  const std::vector<double> x = {kNan, kInf, -kInf, -1};
  for (const DType dtype : {DType::float32, DType::float64}) {
    const auto silent = [&](const auto& f) { exactly(gradient(f, x, dy, dtype), {0, 0, 0, 0}); };
    silent([](const Tensor& v) { return sqrt(v); });
    silent([](const Tensor& v) { return rsqrt(v); });
    silent([](const Tensor& v) { return log(v); });
    silent([](const Tensor& v) { return exp(v); });
    silent([](const Tensor& v) { return square(v); });
    silent([](const Tensor& v) { return pow(v, 2); });
    silent([](const Tensor& v) { return pow(v, 3); });
    silent([](const Tensor& v) { return pow(v, 2.5); });
    silent([](const Tensor& v) { return pow(v, v); });
    silent([](const Tensor& v) { return tanh(v); });
    silent([](const Tensor& v) { return sigmoid(v); });
    silent([](const Tensor& v) { return relu(v); });
    silent([](const Tensor& v) { return silu(v); });
    silent([](const Tensor& v) { return gelu(v); });
    silent([](const Tensor& v) { return gelu(v, GeluForm::exact); });
  }
}

TEST_CASE("functions: the norm of zeros has gradient 0, and so has the sum of squares (H26)") {
  const Tensor x = leaf({0, 0});
  sqrt(sum(square(x))).backward();
  exactly(x.grad(), {0, 0});
  const Tensor z = leaf({0, 0});
  sum(square(z)).backward();
  exactly(z.grad(), {0, 0});
  const Tensor w = leaf({3, 4});
  sqrt(sum(square(w))).backward();
  near(w.grad(), {0.6, 0.8});
}

TEST_CASE("functions: GELU in both forms (H39)") {
  const Tensor x = Tensor::of({1, 2, -3});
  near(gelu(x), {0.841191991, 1.954597694, -0.003637392});
  near(gelu(x, GeluForm::exact), {0.841344746, 1.954499736, -0.004049694});
  near(gradient([](const Tensor& v) { return gelu(v); }, {1}, {1}), {1.082964084});
  near(gradient([](const Tensor& v) { return gelu(v, GeluForm::exact); }, {1}, {1}), {1.083315471});
}

TEST_CASE("functions: activations far out neither overflow nor turn into NaN (as H33)") {
  const Tensor x = leaf({-1e30, -1000, 1000, 1e30});
  exactly(sigmoid(x), {0, 0, 1, 1});
  exactly(tanh(x), {-1, -1, 1, 1});
  exactly(relu(x), {0, 0, 1000, 1e30f});
  for (const auto& f : {gelu(x), gelu(x, GeluForm::exact), silu(x)}) {
    near(f, {0, 0, 1000, 1e30f});
    Tensor(x).zero_grad();
    f.backward(Array::full({4}, 1));
    near(x.grad(), {0, 0, 1, 1});
  }
}

TEST_CASE("functions: NaN passes through") {
  const Tensor x = Tensor::of({kNan});
  for (const Tensor& y : {square(x), sqrt(x), rsqrt(x), exp(x), log(x), tanh(x), sigmoid(x), relu(x), silu(x),
                          gelu(x), gelu(x, GeluForm::exact), pow(x, 2.5), pow(x, x)})
    CHECK(std::isnan(y.item()));
}

TEST_CASE("functions: a gradient is added to one that is there") {
  const auto f = [](const Tensor& x) {
    return exp(x) + sqrt(x) + pow(x, 3) + pow(x, x) + gelu(x) + pow(x, 1.5) + log(x) + tanh(x) + relu(x);
  };
  const Tensor x = Tensor::of({0.5, 1, 2}, DType::float64);
  const GradCheckReport report =
      check_gradients([&](const std::vector<Tensor>& in) { return f(in[0]) + f(in[0]); }, {x});
  CHECK_MESSAGE(report.ok, report.text());
}

TEST_CASE("functions: each keeps one array, x or y") {
  const Tensor x = leaf({1, 2});
  for (const Tensor& y : {exp(x), tanh(x), sigmoid(x), relu(x), sqrt(x), rsqrt(x)}) {
    CHECK(y.node().saved_arrays().size() == 1);
    CHECK(y.node().saved("y").shares_storage(y.array()));
  }
  for (const Tensor& y : {log(x), square(x), silu(x), gelu(x), gelu(x, GeluForm::exact), pow(x, 2)}) {
    CHECK(y.node().saved_arrays().size() == 1);
    CHECK(y.node().saved("x").shares_storage(x.array()));
  }
}

TEST_CASE("functions: no numbers in, no numbers out") {
  const Tensor x = leaf(Array::zeros({0, 3}));
  const Tensor y = gelu(exp(pow(sqrt(x), 3)));
  CHECK(y.shape() == Shape{0, 3});
  y.backward(Array::zeros({0, 3}));
  CHECK(x.grad().shape() == Shape{0, 3});
  CHECK_THROWS_AS(exp(Tensor()), DTypeError);
}

TEST_CASE("functions: gelu_composed gives the values and gradients of gelu") {
  const Array numbers = expect::normal({60}, 31, DType::float64, 0, 2),
              dy = expect::normal({60}, 32, DType::float64);
  for (const GeluForm form : {GeluForm::tanh, GeluForm::exact}) {
    const Tensor x = expect::leaf(numbers), again = expect::leaf(numbers);
    const Tensor fused = gelu(x, form), composed = gelu_composed(again, form);
    fused.backward(dy);
    composed.backward(dy);
    expect::within_ulps(fused.array(), composed.array());
    expect::within_ulps(x.grad(), again.grad());
  }
}
