// The norm of all gradients, clipping by it (H49, H50), and the kernels of an update on each instruction set.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "expect.h"
#include "handgrad/core/kernels/update_rows.h"
#include "handgrad/core/parallel.h"
#include "handgrad/optim/adam.h"
#include "handgrad/optim/clip.h"
#include "handgrad/optim/sgd.h"

using namespace handgrad;
using namespace handgrad::optim;

namespace {

void give(Parameter& parameter, const std::vector<double>& gradient) {
  parameter.slot()->grad = Array::of(gradient, parameter.shape(), parameter.dtype());
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("clipping: H49 the norm is a double, and what is not finite is named") {
  Parameter w("w", Tensor::zeros({100})), v("v", Tensor::zeros({2}));
  const Parameters all = {{"v", &v, nullptr}, {"w", &w, nullptr}};
  GlobalNorm global_norm;
  give(w, std::vector<double>(100, 1e20));
  GradientNorm norm = global_norm(all);  // v has no gradient
  CHECK(norm.norm == doctest::Approx(1e21).epsilon(1e-7));
  CHECK_FALSE(norm.first_non_finite.has_value());
  Sgd sgd(all, {.lr = 1});
  sgd.step(1, clip_factor(norm.norm, 1));
  CHECK(w.values()[0] == doctest::Approx(-0.1).epsilon(1e-6));

  give(v, {1, -kInfinity});
  give(w, std::vector<double>(100, std::nan("")));
  norm = global_norm(all);
  CHECK(norm.first_non_finite == std::size_t{0});
  CHECK_FALSE(std::isfinite(norm.norm));
  CHECK(v.grad().values() == std::vector<double>{1, -kInfinity});
  v.freeze();
  CHECK(global_norm(all).first_non_finite == std::size_t{1});
}

TEST_CASE("clipping: H50 zeros stay zeros, and 0 switches it off") {
  Parameter w("w", Tensor::ones({1}));
  give(w, {0});
  GlobalNorm global_norm;
  CHECK(global_norm({{"w", &w, nullptr}}).norm == 0);
  CHECK(clip_factor(0, 1) == 1);
  CHECK(clip_factor(5, 0) == 1);
  CHECK(clip_factor(1, 1) == 1);
  CHECK(clip_factor(4, 1) == 1 / (4 + 1e-6));
}

TEST_CASE("clipping: the norm over several gradients, in chunks, in double, for any number of threads") {
  Parameter large("l", Tensor::zeros({400, 251}, DType::float32)),
      small("s", Tensor::zeros({3}, DType::float64));
  large.slot()->grad = expect::normal({400, 251}, 1);
  give(small, {3, -4, 12});
  const Parameters all = {{"l", &large, nullptr}, {"s", &small, nullptr}};
  long double sum = 169;
  for (const double x : large.grad().values()) sum += static_cast<long double>(x) * x;
  const int before = thread_count();
  GlobalNorm global_norm;
  set_thread_count(1);
  const double norm = global_norm(all).norm;
  CHECK(norm == doctest::Approx(static_cast<double>(std::sqrt(sum))).epsilon(1e-14));
  for (const int threads : {2, 3}) {
    set_thread_count(threads);
    CHECK(global_norm(all).norm == norm);
  }
  set_thread_count(before);

  // Finite, but beyond what the squares of doubles can hold.
  give(small, {3e200, -4e200, 0});
  CHECK(global_norm({{"s", &small, nullptr}}).norm == doctest::Approx(5e200).epsilon(1e-14));
}

TEST_CASE("update kernels: the instruction sets agree") {
  const kernels::AdamFactors<float> factors{.gradient_scale = 0.5f,
                                            .l2 = 0.01f,
                                            .keep = 0.999f,
                                            .one_minus_beta1 = 0.1f,
                                            .beta2 = 0.95f,
                                            .one_minus_beta2 = 0.05f,
                                            .step_size = 0.02f,
                                            .root_correction = 1.5f,
                                            .eps = 1e-8f};
  for (const std::int64_t n : {1, 15, 16, 17, 100}) {
    Array expected, fused;
    expect::on_each_target([&](const std::string& target) {
      Array w = expect::normal({n}, 1), m = expect::normal({n}, 2),
            v = expect::normal({n}, 3, DType::float32, 4, 1);
      const Array g = expect::normal({n}, 4);
      HANDGRAD_ACTIVE(adam<float>)
      (w.mutable_data<float>(), m.mutable_data<float>(), v.mutable_data<float>(), g.data<float>(), n,
       factors);
      if (!expected.defined()) expected = w;
      expect::near(w, expected.values(), 1e-6, 1e-6);
      if (target == "baseline") return;  // without fused multiply-add
      if (!fused.defined()) fused = w;
      CHECK(expect::same_bits(w, fused));
    });
  }
}

TEST_CASE("clipping: gradients are read, never written, and the factor is as good as a scaled gradient") {
  using Make = std::function<std::unique_ptr<Optimizer>(const Parameters&)>;
  const std::vector<Make> all{
      [](const Parameters& p) { return std::make_unique<Adam>(p, AdamOptions{}, Decay::decoupled); },
      [](const Parameters& p) { return std::make_unique<Sgd>(p, SgdOptions{}); },
      [](const Parameters& p) { return std::make_unique<Sgd>(p, SgdOptions{.momentum = 0.9}); },
      [](const Parameters& p) {
        return std::make_unique<Sgd>(p, SgdOptions{.momentum = 0.9, .nesterov = true});
      }};
  for (const Make& make : all) {
    Parameter a("a", Tensor::of({1, 2, 3})), b("b", Tensor::of({1, 2, 3}));
    const auto of_a = make({{"a", &a, nullptr}}), of_b = make({{"b", &b, nullptr}});
    for (int step = 0; step < 2; ++step) {
      give(a, {4, -8, 16});
      give(b, {1, -2, 4});
      const std::uint32_t version = a.grad().version();
      of_a->step(0.1, 0.25);
      of_b->step(0.1);
      CHECK(expect::same_bits(a.array(), b.array()));
      CHECK(a.grad().values() == std::vector<double>{4, -8, 16});
      CHECK(a.grad().version() == version);
    }
  }
}
