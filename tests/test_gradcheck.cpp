// The gradient check itself: it must pass what is right and fail what is wrong.
#include "handgrad/core/gradcheck.h"

#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/error.h"
#include "handgrad/core/ops.h"

using namespace handgrad;

namespace {

constexpr DType f64 = DType::float64;

Tensor normal_input(const Shape& shape, std::uint64_t seed) {
  return Tensor::constant(expect::normal(shape, seed, f64));
}

/// x^3, with a derivative that is right up to a factor.
template <int Percent>
Tensor cube(const Tensor& x) {
  const Array cubed = mul(mul(x.detach(), x.detach()), x.detach()).array();
  return record("cube", cubed, {x}, {{"x", x.array()}},
                [](const Node& node, const Array& dy, GradSink& sink) {
                  const Tensor x2 = Tensor::constant(node.saved("x"));
                  sink.move(0, mul(mul(mul(x2, x2), 3.0 * Percent / 100), Tensor::constant(dy)).array());
                });
}

}  // namespace

TEST_CASE("gradcheck: a right backward passes at 1e-9, one that is 1% off fails and is shown") {
  const Tensor x = normal_input({2, 3}, 1);
  const auto right =
      check_gradients([](const auto& in) { return cube<100>(in[0]); }, {x}, {.tolerance = 1e-9});
  CHECK(right.ok);
  CHECK(right.error < 1e-9);

  const auto wrong = check_gradients([](const auto& in) { return cube<101>(in[0]); }, {x});
  CHECK_FALSE(wrong.ok);
  REQUIRE(wrong.tensors.size() == 1);
  const GradCheckEntry& entry = wrong.tensors[0];
  CHECK(entry.error == doctest::Approx(0.01 / 1.01).epsilon(1e-6));
  CHECK(entry.gradient == doctest::Approx(1.01 * entry.difference));
  CHECK(std::abs(entry.gradient) == doctest::Approx(entry.largest));
  CHECK(entry.checked == 6);
  CHECK(wrong.text().find("input 0") != std::string::npos);
  CHECK(wrong.text().find("WRONG") != std::string::npos);
}

TEST_CASE("gradcheck: upstream numbers differ, so a backward that ignores them fails") {
  // sum(x) backward that hands on one number for all elements is right only for equal upstream numbers.
  const auto lazy = [](const std::vector<Tensor>& in) {
    return record("lazy", in[0].array().copy(), {in[0]}, {},
                  [](const Node&, const Array& dy, GradSink& sink) {
                    sink.move(0, Array::full(dy.shape(), dy.value(0), dy.dtype()));
                  });
  };
  CHECK_FALSE(check_gradients(lazy, {normal_input({4}, 2)}).ok);
}

TEST_CASE("gradcheck: a missing gradient is wrong unless the differences are 0 too") {
  const Tensor x = normal_input({3}, 3), y = normal_input({3}, 4);
  const auto detached = check_gradients([](const auto& in) { return mul(in[0], in[1].detach()); }, {x, y});
  CHECK_FALSE(detached.ok);
  CHECK(detached.tensors[0].ok);
  CHECK_FALSE(detached.tensors[1].ok);
  CHECK_FALSE(detached.tensors[1].has_gradient);
  CHECK(detached.text().find("none") != std::string::npos);

  const auto unused = check_gradients([](const auto& in) { return mul(in[0], 2.0); }, {x, y});
  CHECK(unused.ok);
  CHECK_FALSE(unused.tensors[1].has_gradient);
}

TEST_CASE("gradcheck: a tensor whose gradient is rounding is measured against the largest of all") {
  // A constant added to all logits does not change the softmax: its gradient is 0 except for rounding.
  const auto f = [](const std::vector<Tensor>& in) {
    const Tensor z = in[0] + in[1];
    const Tensor e = exp(z);
    return e / sum(e, {0}, KeepDim::yes);
  };
  const auto report = check_gradients(f, {normal_input({5}, 5), normal_input({1}, 6)}, {.tolerance = 1e-7});
  CHECK(report.ok);
  CHECK(report.tensors[1].largest < 1e-10);
}

TEST_CASE("gradcheck: inputs are left as they were, and parameters are put back") {
  Tensor x = normal_input({3}, 7);
  const std::vector<double> before = x.values();
  check_gradients([](const auto& in) { return cube<100>(in[0]); }, {x});
  CHECK(x.values() == before);
  CHECK_FALSE(x.needs_grad());

  Parameter scale("scale", x), frozen("frozen", x);
  frozen.freeze();
  const auto report =
      check_parameters([&] { return cube<100>(scale) + frozen; },
                       std::vector<CheckedParameter>{{"norm.scale", &scale}, {"norm.frozen", &frozen}});
  CHECK(report.ok);
  REQUIRE(report.tensors.size() == 1);
  CHECK(report.tensors[0].name == "norm.scale");
  CHECK(scale.values() == before);
  CHECK_FALSE(scale.has_grad());
}

TEST_CASE("gradcheck: a result that shares the numbers of its input") {
  CHECK(check_gradients([](const auto& in) { return reshape(in[0], {6}); }, {normal_input({2, 3}, 11)}).ok);
}

TEST_CASE("gradcheck: some elements of a large tensor") {
  const auto report = check_gradients([](const auto& in) { return cube<100>(in[0]); },
                                      {normal_input({1000}, 8)}, {.elements = 10});
  CHECK(report.ok);
  CHECK(report.tensors[0].checked == 10);
}

TEST_CASE("gradcheck: float32 is an error with the reason (H32)") {
  const Tensor x = Tensor::of({1, 2}), w = Tensor::of({{3, 4}});
  const auto linear2 = [](const std::vector<Tensor>& in) { return sum(in[0] * in[1], {1}); };
  CHECK(expect::message<DTypeError>([&] {
          check_gradients(linear2, {x, w});
        }) ==
        "check_gradients: input 0 must be float64, got float32\n"
        "  input 0 [2]\n"
        "  try: float64 for all numbers: in float32 the differences are wrong from the third digit on, even "
        "where the "
        "gradient is right");
  const auto report =
      check_gradients(linear2, {Tensor::of({1, 2}, f64), Tensor::of({{3, 4}}, f64)}, {.tolerance = 1e-7});
  CHECK(report.ok);
}

TEST_CASE("gradcheck: a function that changes from call to call is an error") {
  int calls = 0;
  const auto counting = [&](const std::vector<Tensor>& in) { return in[0] * static_cast<double>(++calls); };
  CHECK(
      expect::message<ValueError>([&] { check_gradients(counting, {normal_input({2}, 9)}); }) ==
      "check_gradients: the function must give the same result each time, got two that differ at position 0\n"
      "  result [2]");
}

TEST_CASE("gradcheck: random operations draw the same numbers in every evaluation") {
  set_random_context({.seed = 3});
  const auto noisy = [](const std::vector<Tensor>& in) {
    Array noise(in[0].shape(), f64);
    const RandomKey key = next_random_key();
    for (std::int64_t i = 0; i < noise.numel(); ++i)
      noise.mutable_data<double>()[i] = key.block(static_cast<std::uint64_t>(i))[0] * 0x1p-32;
    return in[0] * Tensor::constant(noise);
  };
  CHECK(check_gradients(noisy, {normal_input({4}, 10)}).ok);
}
