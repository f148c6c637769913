#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/gradcheck.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"

using namespace handgrad;
using expect::exactly;
using expect::leaf;
using expect::near;
using expect::normal;
using expect::same_bits;

namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The softmax of one row, in double, from the definition.
std::vector<double> by_definition(const std::vector<double>& x) {
  const double largest = *std::max_element(x.begin(), x.end());
  std::vector<double> p;
  double sum = 0;
  for (const double v : x) sum += std::exp(v - largest);
  for (const double v : x) p.push_back(std::exp(v - largest) / sum);
  return p;
}

}  // namespace

TEST_CASE("softmax: large and distant numbers (H33)") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    near(softmax(Tensor::of({1000, 1001, 1002}, dtype)), {0.09003057, 0.24472847, 0.66524096});
    near(softmax(Tensor::of({-249.9, -424.1, -460.3, 378.1, -292.6}, dtype)), {0, 0, 0, 1, 0}, 1e-200, 0);
    near(log_softmax(Tensor::of({1000, 1001, 1002}, dtype)), {-2.40760596, -1.40760596, -0.40760596});
    exactly(log_softmax(Tensor::of({-431, 279, 427}, dtype)), {-858, -148, 0});
  }
}

TEST_CASE("softmax: rows of every width, against the definition") {
  for (const std::int64_t width : {1, 2, 7, 8, 15, 16, 17, 33, 64, 1000}) {
    INFO("width ", width);
    const Array x = normal({3, width}, 1, DType::float32, 0, 4);
    std::vector<double> expected, logarithms;
    for (std::int64_t row = 0; row < 3; ++row) {
      std::vector<double> numbers;
      for (std::int64_t i = 0; i < width; ++i) numbers.push_back(x.value(row * width + i));
      for (const double p : by_definition(numbers)) {
        expected.push_back(p);
        logarithms.push_back(std::log(p));
      }
    }
    near(softmax(Tensor::constant(x)), expected, 1e-7, 1e-6);
    near(log_softmax(Tensor::constant(x)), logarithms, 1e-6, 1e-6);
  }
}

TEST_CASE("softmax: along any dimension it is the softmax of the transpose") {
  const Tensor x = Tensor::constant(normal({3, 20, 37}, 2));
  for (const auto& op : {softmax, log_softmax}) {
    CHECK(same_bits(op(x, 1).array(), transpose(op(transpose(x, 1, 2), -1), 1, 2).array()));
    CHECK(same_bits(op(x, -3).array(), transpose(op(transpose(x, 0, 2), -1), 0, 2).array()));
    CHECK(same_bits(op(x, 2).array(), op(x, -1).array()));

    const Array dy = normal({3, 20, 37}, 3);
    const Tensor a = leaf(x.array()), b = leaf(x.array());
    op(a, 1).backward(dy);
    transpose(op(transpose(b, 1, 2), -1), 1, 2).backward(dy);
    CHECK(same_bits(a.grad(), b.grad()));
    op(a, 1).backward(dy);  // added to what is there
    CHECK(same_bits(a.grad(), (Tensor::constant(b.grad()) * 2).array()));
  }
}

TEST_CASE("softmax: a slice that is masked altogether gives zeros and no gradient (H35)") {
  for (const int dim : {0, 1}) {
    Tensor x = Tensor::of({{-kInf, -kInf, -kInf}, {1, -kInf, 1}, {2, 2, 2}});
    if (dim == 0) x = transpose(x, 0, 1);
    x = x.detach().requires_grad();
    Tensor y = softmax(x, dim);
    const Array dy = normal({3, 3}, 4);
    y.backward(dy);
    Tensor dx = Tensor::constant(x.grad());
    if (dim == 0) y = transpose(y, 0, 1), dx = transpose(dx, 0, 1);
    near(slice(y, 0, 0, 2), {0, 0, 0, 0.5, 0, 0.5});
    exactly(slice(dx, 0, 0, 1), {0, 0, 0});
    CHECK(std::isfinite(sum(dx).item()));
    CHECK(slice(dx, 0, 1, 2).values()[0] != 0);
  }
  // The logarithm of no probability is -inf; its gradient is 0 as well.
  const Tensor x = Tensor::of({{-kInf, -kInf}, {0, -kInf}}).requires_grad();
  const Tensor y = log_softmax(x);
  exactly(y, {-kInf, -kInf, 0, -kInf});
  y.backward(Array::of({1, 2, 3, 0}, {2, 2}));
  exactly(x.grad(), {0, 0, 0, 0});
}

TEST_CASE("softmax: NaN and infinity stay in their slice") {
  const Tensor x = Tensor::of({{1, kNaN, 2}, {kInf, 0, 0}, {-kInf, kNaN, -kInf}, {0, 0, 0}});
  for (const auto& op : {softmax, log_softmax}) {
    const std::vector<double> y = op(x, -1).values();
    for (std::size_t i = 0; i < 9; ++i) CHECK(std::isnan(y[i]));
    CHECK(y[9] == doctest::Approx(op(Tensor::of({0, 0, 0}), -1).values()[0]));
  }
}

TEST_CASE("softmax: gradients") {
  const Tensor x = Tensor::constant(normal({2, 5, 3}, 5, DType::float64));
  for (const int dim : {0, 1, 2}) {
    for (const auto& op : {softmax, log_softmax}) {
      const GradCheckReport report =
          check_gradients([&](const std::vector<Tensor>& in) { return op(in[0], dim); }, {x});
      INFO(report.text());
      CHECK(report.ok);
    }
  }
}

TEST_CASE("softmax: empty slices, scalars, wrong dimensions") {
  CHECK(softmax(Tensor::zeros({0, 4})).shape() == Shape{0, 4});
  CHECK(softmax(Tensor::zeros({4, 0})).shape() == Shape{4, 0});
  CHECK(softmax(Tensor::zeros({4, 0, 3}), 1).shape() == Shape{4, 0, 3});
  const Tensor x = Tensor::zeros({0, 4}).requires_grad();
  log_softmax(x).backward(Array::zeros({0, 4}));
  CHECK(x.grad().shape() == Shape{0, 4});
  CHECK(expect::message<ShapeError>([] {
          softmax(Tensor::zeros({2, 3}), 2);
        }) == "softmax: dimension must lie in -2..1, got 2\n  x [2, 3]");
  CHECK_THROWS_AS(log_softmax(Tensor::scalar(1)), ShapeError);
  CHECK_THROWS_AS(softmax(Tensor()), DTypeError);
}

TEST_CASE("softmax: the same bits for any number of threads and of other rows") {
  const Array x = normal({600, 300}, 6), dy = normal({600, 300}, 7);
  const int before = thread_count();
  for (const int dim : {0, 1}) {
    Array y, dx;
    for (const int threads : {1, 2, 3}) {
      set_thread_count(threads);
      const Tensor in = leaf(x);
      const Tensor out = softmax(in, dim);
      out.backward(dy);
      if (threads == 1) y = out.array(), dx = in.grad();
      CHECK(same_bits(out.array(), y));
      CHECK(same_bits(in.grad(), dx));
    }
  }
  set_thread_count(before);
  const Tensor all = Tensor::constant(x);
  CHECK(same_bits(softmax(slice(all, 0, 7, 9)).array(), slice(softmax(all), 0, 7, 9).array()));
}

TEST_CASE("softmax_composed gives the values and gradients of softmax") {
  const Array numbers = normal({4, 7, 3}, 33, DType::float64, 0, 3),
              dy = normal({4, 7, 3}, 34, DType::float64);
  for (const int dim : {0, 1, -1}) {
    const Tensor x = leaf(numbers), again = leaf(numbers);
    const Tensor fused = softmax(x, dim), composed = softmax_composed(again, dim);
    fused.backward(dy);
    composed.backward(dy);
    expect::within_ulps(fused.array(), composed.array());
    expect::within_ulps(x.grad(), again.grad());
  }
}
