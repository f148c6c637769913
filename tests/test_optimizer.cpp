// SGD, Adam and AdamW: hand values, PyTorch's trajectories, the cases H44 to H48, H52, H88 and H104.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "expect.h"
#include "handgrad/core/parallel.h"
#include "handgrad/io/name_report.h"
#include "handgrad/optim/adam.h"
#include "handgrad/optim/clip.h"
#include "handgrad/optim/sgd.h"

using namespace handgrad;
using namespace handgrad::io;
using namespace handgrad::optim;

namespace {

/// A parameter of one number; a matrix decays.
struct One {
  explicit One(double value, DType dtype = DType::float64, bool matrix = false)
      : w("w", Tensor::full(matrix ? Shape{1, 1} : Shape{1}, value, dtype)) {}
  void give(double gradient) { w.slot()->grad = Array::full(w.shape(), gradient, w.dtype()); }
  double value() const { return w.item(); }
  Parameters list() { return {{"w", &w, nullptr}}; }

  Parameter w;
};

void give(Parameter& parameter, const std::vector<double>& gradient) {
  parameter.slot()->grad = Array::of(gradient, parameter.shape(), parameter.dtype());
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("sgd: three steps by hand") {
  One plain(1);
  Sgd sgd(plain.list(), {.lr = 0.1});
  for (const double gradient : {1.0, -2.0, 0.5}) {
    plain.give(gradient);
    sgd.step(sgd.lr());
  }
  CHECK(plain.value() == doctest::Approx(1 - 0.1 * (1 - 2 + 0.5)).epsilon(1e-15));

  One fast(0);
  Sgd momentum(fast.list(), {.lr = 0.1, .momentum = 0.9});
  for (int i = 0; i < 3; ++i) {
    fast.give(1);
    momentum.step(0.1);
  }
  CHECK(fast.value() == doctest::Approx(-0.1 * (1 + 1.9 + 2.71)).epsilon(1e-15));

  One ahead(0);
  Sgd nesterov(ahead.list(), {.lr = 0.1, .momentum = 0.5, .nesterov = true});
  ahead.give(1);
  nesterov.step(0.1);  // velocity 1, step 1 + 0.5
  CHECK(ahead.value() == doctest::Approx(-0.15).epsilon(1e-15));
  nesterov.step(0.1);  // velocity 1.5, step 1 + 0.75
  CHECK(ahead.value() == doctest::Approx(-0.325).epsilon(1e-15));
}

TEST_CASE("sgd: H48 the first velocity is the whole gradient, and decay needs no momentum") {
  One one(0);
  Sgd sgd(one.list(), {.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  one.give(1);
  sgd.step(0.1);
  CHECK(one.value() == doctest::Approx(-0.1).epsilon(1e-15));
  sgd.step(0.1);  // velocity 0.9 + 0.5
  CHECK(one.value() == doctest::Approx(-0.1 - 0.14).epsilon(1e-15));

  One matrix(1, DType::float64, true);
  Sgd decay(matrix.list(), {.lr = 0.1, .weight_decay = 0.1});
  matrix.give(0);
  decay.step(0.1);
  CHECK(matrix.value() == doctest::Approx(0.99).epsilon(1e-15));
}

TEST_CASE("sgd: H52 the learning rate is not part of the velocity") {
  One one(0);
  Sgd sgd(one.list(), {.lr = 0.1, .momentum = 0.9});
  one.give(1);
  sgd.step(0.1);
  CHECK(one.value() == doctest::Approx(-0.1).epsilon(1e-15));
  sgd.step(0.01);
  CHECK(one.value() == doctest::Approx(-0.119).epsilon(1e-15));
}

TEST_CASE("adam: H45 and H46 bias is corrected from step 1, eps is added outside of the root") {
  for (const DType dtype : {DType::float64, DType::float32}) {
    for (const Decay decay : {Decay::coupled, Decay::decoupled}) {
      One one(0, dtype);
      Adam adam(one.list(), {.lr = 1e-3}, decay);
      one.give(0.1);
      adam.step(1e-3);
      CHECK(one.value() == doctest::Approx(-9.999999e-4).epsilon(1e-7));
      One tiny(0, dtype);
      Adam of_tiny(tiny.list(), {.lr = 1e-3}, decay);
      tiny.give(1e-8);
      of_tiny.step(1e-3);
      CHECK(tiny.value() == doctest::Approx(-5e-4).epsilon(1e-6));
    }
  }
}

TEST_CASE("adam: three steps by hand") {
  One one(1);
  Adam adam(one.list(), {.lr = 0.1, .betas = {0.5, 0.75}, .eps = 0}, Decay::coupled);
  one.give(1);
  adam.step(0.1);  // m 0.5 / 0.5, v 0.25 / 0.25
  CHECK(one.value() == doctest::Approx(0.9).epsilon(1e-15));
  one.give(-1);
  adam.step(0.1);  // m -0.25 / 0.75, v 0.4375 / 0.4375
  CHECK(one.value() == doctest::Approx(0.9 + 0.1 / 3).epsilon(1e-15));
  one.give(2);
  adam.step(0.1);  // m 0.875 / 0.875, v 1.328125 / 0.578125
  CHECK(one.value() == doctest::Approx(0.9 + 0.1 / 3 - 0.1 / std::sqrt(1.328125 / 0.578125)).epsilon(1e-14));
}

TEST_CASE("adamw: H47 decay is decoupled and pulls at matrices only") {
  One matrix(1, DType::float64, true), scale(1), bias(1);
  Parameters parameters = {
      {"m", &matrix.w, nullptr}, {"scale", &scale.w, nullptr}, {"bias", &bias.w, nullptr}};
  Adam adamw(parameters, {.lr = 0.1, .weight_decay = 0.01}, Decay::decoupled);
  for (One* one : {&matrix, &scale, &bias}) one->give(0);
  adamw.step(0.1);
  CHECK(matrix.value() == doctest::Approx(0.999).epsilon(1e-15));
  CHECK(scale.value() == 1);
  CHECK(bias.value() == 1);
  adamw.step(0.1);
  CHECK(matrix.value() == doctest::Approx(0.999 * 0.999).epsilon(1e-15));

  One coupled(1, DType::float64, true);
  Adam adam(coupled.list(), {.lr = 0.1, .weight_decay = 0.01}, Decay::coupled);
  coupled.give(0);
  adam.step(0.1);  // the gradient is 0.01 then, and a first step has the size lr
  CHECK(coupled.value() == doctest::Approx(0.9).epsilon(1e-6));
}

TEST_CASE("optimizers: ten steps as PyTorch takes them") {
  struct Trajectory {
    const char* rule;
    std::vector<double> end;  // of the matrix, then of the vector
  };
  // Printed by tests/golden/optimizer_trajectories.py, PyTorch 1.13.
  const Trajectory kTrajectories[] = {
      {"sgd",
       {0.82566077994999998, -0.99576736768000007, 1.5526592417128755, 0.82566077994999998,
        -0.99576736768000007, 1.5526592417128755}},
      {"sgd momentum",
       {1.1429031067824011, -0.64739806099113517, -0.1136796611794746, 1.2943946944, -0.63832487500000001,
        0.3446877379757165}},
      {"sgd dampening",
       {1.1244106051544034, -0.77712986544087759, 0.98003102322487434, 1.1244106051544034,
        -0.77712986544087759, 0.98003102322487434}},
      {"sgd nesterov",
       {1.1207427379413439, -0.96079894812023015, 0.95456781957904313, 1.1309962266912135,
        -0.96404748503596871, 0.9884950899960282}},
      {"adam",
       {0.92586342114680698, -0.76857276291947629, 1.5074206766128295, 0.94834409277687359,
        -0.77025258235758842, 1.5074206795553089}},
      {"adamw",
       {0.93817225357972189, -0.76062932710459918, 1.4179006942444197, 0.96945282538005484,
        -0.78504359256564382, 1.5039027398740086}},
  };
  const auto make = [](const std::string& rule, const Parameters& all) -> std::unique_ptr<Optimizer> {
    const auto sgd = [&](const SgdOptions& options) { return std::make_unique<Sgd>(all, options); };
    if (rule == "sgd") return sgd({.lr = 0.1});
    if (rule == "sgd momentum") return sgd({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
    if (rule == "sgd dampening") return sgd({.lr = 0.1, .momentum = 0.8, .dampening = 0.3});
    if (rule == "sgd nesterov")
      return sgd({.lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01});
    const AdamOptions coupled{.lr = 0.05, .betas = {0.8, 0.95}, .weight_decay = 0.1};
    const AdamOptions decoupled{.lr = 0.05, .betas = {0.9, 0.95}, .eps = 1e-3, .weight_decay = 0.1};
    return rule == "adam" ? std::make_unique<Adam>(all, coupled, Decay::coupled)
                          : std::make_unique<Adam>(all, decoupled, Decay::decoupled);
  };
  const std::array<double, 3> start = {0.5, -0.3, 2}, target = {1, -1, 0}, steepness = {1, 4, 0.25};
  for (const DType dtype : {DType::float64, DType::float32}) {
    for (const Trajectory& trajectory : kTrajectories) {
      CAPTURE(trajectory.rule);
      const std::vector<double>& end = trajectory.end;
      Parameter matrix("m", Tensor::of({start[0], start[1], start[2]}, {1, 3}, dtype));
      Parameter vector("v", Tensor::of({start[0], start[1], start[2]}, {3}, dtype));
      const auto optimizer = make(trajectory.rule, {{"m", &matrix, nullptr}, {"v", &vector, nullptr}});
      for (int step = 0; step < 10; ++step) {
        for (Parameter* parameter : {&matrix, &vector}) {
          std::vector<double> gradient = parameter->values();
          for (std::size_t i = 0; i < 3; ++i) gradient[i] = steepness[i] * (gradient[i] - target[i]);
          give(*parameter, gradient);
        }
        optimizer->step(optimizer->lr());
      }
      const double tolerance = dtype == DType::float64 ? 1e-13 : 3e-6;
      expect::near(matrix, {end.begin(), end.begin() + 3}, tolerance, 0);
      expect::near(vector, {end.begin() + 3, end.end()}, tolerance, 0);
    }
  }
}

TEST_CASE("optimizer: H44 a parameter under two names moves once, under its first name") {
  One one(0);
  Sgd sgd({{"tok_emb.weight", &one.w, nullptr}, {"out_head.weight", &one.w, nullptr}},
          {.lr = 1, .momentum = 0.5});
  REQUIRE(sgd.parameters().size() == 1);
  one.give(0.25);
  sgd.step(1);
  CHECK(one.value() == -0.25);
  REQUIRE(sgd.state().size() == 2);
  CHECK(sgd.state()[0].name == "tok_emb.weight.step");
  CHECK(sgd.state()[1].name == "tok_emb.weight.momentum");
}

TEST_CASE("optimizer: H104 no gradient leaves a parameter alone, a gradient of zeros does not") {
  for (const bool adam : {true, false}) {
    One used(1, DType::float64, true), unused(1, DType::float64, true);
    Parameters all = {{"used", &used.w, nullptr}, {"unused", &unused.w, nullptr}};
    std::unique_ptr<Optimizer> optimizer;
    if (adam) {
      optimizer = std::make_unique<Adam>(all, AdamOptions{.lr = 0.1, .weight_decay = 0.1}, Decay::decoupled);
    } else {
      optimizer = std::make_unique<Sgd>(all, SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
    }
    for (One* one : {&used, &unused}) one->give(1);
    optimizer->step(0.1);
    CHECK(optimizer->take_skipped().empty());
    const double after_one = unused.value();
    CHECK(used.value() == after_one);

    used.give(0);
    unused.w.zero_grad();
    const std::vector<double> momentum = optimizer->state().back().array.values();
    optimizer->step(0.1);
    optimizer->step(0.1);
    CHECK(unused.value() == after_one);
    CHECK(optimizer->state().back().array.values() == momentum);
    CHECK(optimizer->updates(0) == 3);
    CHECK(optimizer->updates(1) == 1);
    CHECK(used.value() < 0.95 * after_one);  // decay and momentum still apply
    CHECK(optimizer->take_skipped() == std::vector<std::string>{"unused"});
    optimizer->step(0.1);
    CHECK(optimizer->take_skipped().empty());  // each name once
  }
}

TEST_CASE("optimizer: frozen parameters stay where they are and are not reported") {
  One one(1, DType::float64, true);
  Adam adamw(one.list(), {.lr = 0.1, .weight_decay = 0.1}, Decay::decoupled);
  one.give(1);
  one.w.freeze();
  adamw.step(0.1);
  CHECK(one.value() == 1);
  CHECK(adamw.updates(0) == 0);
  CHECK(adamw.state().empty());
  CHECK(adamw.take_skipped().empty());
}

TEST_CASE("optimizer: the same bits for any number of threads, at every length") {
  // Longer than several chunks, and short ones that share one.
  const Shape shapes[] = {{300, 301}, {7}, {1}, {0, 4}, {33}, {16384}, {16385}, {2, 3}};
  const int before = thread_count();
  std::vector<Array> reference;
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    std::vector<std::unique_ptr<Parameter>> owned;
    Parameters parameters;
    for (const Shape& shape : shapes) {
      const std::string name = "p" + std::to_string(owned.size());
      owned.push_back(
          std::make_unique<Parameter>(name, Tensor::constant(expect::normal(shape, owned.size()))));
      parameters.push_back({name, owned.back().get(), nullptr});
    }
    Adam adamw(parameters, {.weight_decay = 0.1}, Decay::decoupled);
    for (std::uint64_t step = 0; step < 3; ++step) {
      for (std::size_t i = 0; i < owned.size(); ++i) {
        owned[i]->slot()->grad = expect::normal(shapes[i], 100 * step + i);
      }
      adamw.step(1e-2, 0.7);
    }
    for (std::size_t i = 0; i < owned.size(); ++i) {
      CAPTURE(i);
      if (threads == 1) {
        reference.push_back(owned[i]->array());
      } else {
        CHECK(expect::same_bits(owned[i]->array(), reference[i]));
      }
    }
  }
  set_thread_count(before);
}

TEST_CASE("optimizer: state goes into a checkpoint and comes back") {
  Parameter w("w", Tensor::of({{1, 2}, {3, 4}}, DType::float32)), later("later", Tensor::of({5, 6}));
  const Parameters all = {{"w", &w, nullptr}, {"later", &later, nullptr}};
  Adam first(all, {}, Decay::decoupled);
  give(w, {1, 2, 3, 4});
  first.step(0.1);
  first.step(0.1);

  const std::vector<io::NamedArray> state = first.state();
  REQUIRE(state.size() == 3);  // `later` was never updated
  CHECK(state[0].name == "w.step");
  CHECK(state[0].array.dtype() == DType::int32);
  CHECK(state[0].array.values() == std::vector<double>{2});
  CHECK(state[1].name == "w.exp_avg");
  CHECK(state[2].name == "w.exp_avg_sq");
  CHECK(state[2].array.shape() == Shape{2, 2});

  std::vector<io::NamedArray> copy;
  for (const io::NamedArray& named : state) copy.push_back({named.name, named.array.copy()});
  const Array start = w.array().copy();
  first.step(0.1);
  const Array end = w.array().copy();

  // H88: loading twice leaves one set of moments, and the next step is the same.
  Adam second(all, {}, Decay::decoupled);
  const std::vector<double> mean = copy[1].array.values();
  second.load_state(copy);
  second.load_state(copy);
  CHECK(second.updates(0) == 2);
  CHECK(second.state().size() == 3);
  w.mutable_array().assign(start);
  second.step(0.1);
  CHECK(expect::same_bits(w.array(), end));
  CHECK(copy[1].array.values() == mean);  // what was loaded is a copy
}

TEST_CASE("optimizer: state of another model is rejected as a whole") {
  Parameter w("w", Tensor::of({{1, 2}, {3, 4}})), b("b", Tensor::of({5, 6}));
  Adam adam({{"w", &w, nullptr}, {"b", &b, nullptr}}, {}, Decay::coupled);
  give(w, {1, 1, 1, 1});
  adam.step(0.1);
  Array one({1}, DType::int32);
  *one.mutable_data<std::int32_t>() = 1;
  const std::vector<io::NamedArray> wrong = {
      {"w.step", one},
      {"w.exp_avg", Array::zeros({4})},
      {"b.step", one},
      {"b.exp_avg", Array::zeros({2}, DType::float64)},
      {"b.exp_avg_sq", Array::zeros({2})},
      {"c.step", one},
  };
  CHECK(expect::message<NameMismatchError>([&] { adam.load_state(wrong, "x/optimizer.safetensors"); }) ==
        "x/optimizer.safetensors: 1 missing, 1 unexpected, 1 wrong shape, 1 wrong type\n"
        "  missing     w.exp_avg_sq\n"
        "  unexpected  c.step\n"
        "  wrong shape w.exp_avg: file [4], model [2, 2]\n"
        "  wrong type  b.exp_avg: file float64, model float32");
  *one.mutable_data<std::int32_t>() = 0;
  CHECK(expect::message<Error>([&] {
          adam.load_state({{"w.step", one}}, "x");
        }) == "x: w.step must be at least 1, got 0");
  CHECK(adam.updates(0) == 1);
  CHECK(adam.state().size() == 3);
}

TEST_CASE("optimizers: numbers out of range are rejected by name") {
  One one(1);
  const auto sgd = [&](const SgdOptions& options) {
    return expect::message<ValueError>([&] { Sgd optimizer(one.list(), options); });
  };
  const auto adamw = [&](const AdamOptions& options) {
    return expect::message<ValueError>([&] { Adam optimizer(one.list(), options, Decay::decoupled); });
  };
  CHECK(sgd({.lr = -1}) == "sgd: lr must be a finite number of at least 0, got -1");
  CHECK(sgd({.momentum = 1}) == "sgd: momentum must be at least 0 and below 1, got 1");
  CHECK(sgd({.nesterov = true}) ==
        "sgd: nesterov needs momentum above 0 and dampening 0\n  momentum 0   dampening 0");
  CHECK(adamw({.lr = std::nan("")}) == "adamw: lr must be a finite number of at least 0, got nan");
  CHECK(adamw({.betas = {0.9, 1}}) == "adamw: betas must be at least 0 and below 1, got 1");
  CHECK(adamw({.eps = -1e-8}) == "adamw: eps must be a finite number of at least 0, got -1e-08");
  CHECK(adamw({.weight_decay = kInfinity}) ==
        "adamw: weight_decay must be a finite number of at least 0, got inf");
}
