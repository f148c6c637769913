// The training loop: accumulation, checks that stop it, evaluation, equal bits, no memory from the system.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>

#include "handgrad/cli/bench.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"
#include "handgrad/core/random.h"
#include "toy.h"

using namespace handgrad;
using namespace handgrad::train;
using namespace handgrad::io;
using namespace handgrad::optim;
using toy::Training;

namespace {

/// A model whose loss is what `compute` makes of its parameters.
class Formula final : public models::Model {
 public:
  using Compute = Tensor (*)(const Formula& model);
  explicit Formula(Compute compute)
      : used(param("used", Tensor::of({0, 1}))),
        gain(param("gain", Tensor::ones({4}))),
        shift(param("shift", Tensor::ones({4}))),
        compute_(compute) {}

  Tensor forward(const Ids&) override { return compute_(*this); }
  Tensor loss(const Ids& inputs, const Ids&, std::optional<double>) override { return (*this)(inputs); }
  std::int64_t vocab_size() const override { return 17; }
  std::int64_t context_length() const override { return 8; }

  Parameter& used;
  Parameter& gain;
  Parameter& shift;

 private:
  Compute compute_;
};

struct FormulaTraining {
  explicit FormulaTraining(Formula::Compute compute, bool allow_unused = false, bool check_non_finite = false)
      : model(compute),
        trainer(model, rows, optimizer, schedule,
                {.allow_unused = allow_unused, .check_non_finite = check_non_finite}) {}

  Formula model;
  toy::Rows rows{1, 1};
  Sgd optimizer{model.named_parameters(), {.lr = 0.1, .momentum = 0.9}};
  ConstantSchedule schedule{{.lr = 0.1}};
  Trainer trainer;
};

data::EvaluationWindows windows(std::int64_t tokens, std::int64_t rows) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * i % 17);
  return {data::TokenStream(ids, "test"), rows, 8};
}

}  // namespace

TEST_CASE("trainer: one batch of 8 rows is four of 2, and a step reports what it did") {
  Training whole({.dtype = DType::float64, .rows = 8});
  Training parts({.dtype = DType::float64, .rows = 2, .micro_batches = 4});
  for (std::int64_t step = 1; step <= 3; ++step) {
    const StepReport a = whole.trainer.step(), b = parts.trainer.step();
    CHECK(a.loss == doctest::Approx(b.loss).epsilon(1e-13));
    CHECK(a.grad_norm == doctest::Approx(b.grad_norm).epsilon(1e-12));
    CHECK(a.step == step);
    CHECK(b.step == step);
    CHECK(a.tokens == 64);
    CHECK(b.tokens == 64);
    CHECK(a.lr == whole.schedule.lr(step - 1));
    CHECK(a.clip_factor == 1);
    CHECK(whole.trainer.step_count() == step);
  }
  CHECK(toy::farthest(whole.weights(), parts.weights()) < 1e-12);
  CHECK(whole.trainer.next_lr() == whole.schedule.lr(3));
}

TEST_CASE("trainer: H53 and H54 the mean is over tokens, however they lie in micro-batches") {
  // Rows 0 to 2 count: three in the first micro-batch, none in the other; or two and one.
  Training one({.dtype = DType::float64, .rows = 4, .ignore_from = 3});
  Training uneven({.dtype = DType::float64, .rows = 2, .micro_batches = 2, .ignore_from = 3});
  Training half_empty({.dtype = DType::float64, .rows = 4, .micro_batches = 4, .ignore_from = 3});
  for (int step = 0; step < 3; ++step) {
    const StepReport expected = one.trainer.step();
    CHECK(expected.tokens == 24);
    for (Training* training : {&uneven, &half_empty}) {
      const StepReport report = training->trainer.step();
      CHECK(report.tokens == 24);
      CHECK(report.loss == doctest::Approx(expected.loss).epsilon(1e-13));
      CHECK(report.grad_norm == doctest::Approx(expected.grad_norm).epsilon(1e-12));
    }
  }
  CHECK(toy::farthest(one.weights(), uneven.weights()) < 1e-12);
  CHECK(toy::farthest(one.weights(), half_empty.weights()) < 1e-12);
}

TEST_CASE("trainer: H36 a step without targets has loss 0 and says that there was nothing to learn from") {
  Training training({.ignore_from = 0});
  const StepReport report = training.trainer.step();
  CHECK(report.tokens == 0);
  CHECK(report.loss == 0);
  CHECK(report.grad_norm == 0);
  for (const Array& weight : training.weights()) CHECK(std::isfinite(weight.value(0)));
}

TEST_CASE("trainer: clipping enters the update, not the gradients") {
  Training free({}), clipped({.trainer = {.seed = 7, .grad_clip = 0.01}});
  const StepReport a = free.trainer.step(), b = clipped.trainer.step();
  CHECK(a.grad_norm == b.grad_norm);
  CHECK(b.grad_norm > 0.01);
  CHECK(b.clip_factor == 0.01 / (b.grad_norm + 1e-6));
  CHECK(expect::same_bits(free.model.out_head.weight.grad(), clipped.model.out_head.weight.grad()));
  // AdamW's first moment tells the two apart.
  const Array m_free = free.optimizer.state()[1].array, m_clipped = clipped.optimizer.state()[1].array;
  expect::near(m_clipped, (Tensor::constant(m_free) * b.clip_factor).values(), 1e-12, 1e-5);
  CHECK_THROWS_AS(Training({.trainer = {.grad_clip = -1}}), ValueError);
}

TEST_CASE("trainer: a loss that is not finite stops before the update and names the first wrong tensor") {
  Training training({});
  training.trainer.step();
  Parameter& scale = *training.model.find_parameter("trf_blocks.0.norm2.scale");
  scale.mutable_array().mutable_data<float>()[3] = std::nanf("");
  const std::vector<Array> before = training.weights();
  try {
    training.trainer.step();
    FAIL("no error");
  } catch (const NonFiniteError& error) {
    CHECK(std::string(error.what()) ==
          "train: the loss of step 2 must be a finite number, got NaN\n"
          "  first   trf_blocks.0.norm2.scale [16], a parameter: 1 of 16 numbers is not finite\n"
          "  in      trf_blocks.0.norm2\n"
          "  Nothing was updated.");
    CHECK(error.quantity() == "loss");
    CHECK(error.step() == 2);
    CHECK(error.tensor() == "trf_blocks.0.norm2.scale");
    CHECK(std::isnan(error.value()));
  }
  CHECK(toy::same_bits(training.weights(), before));
  CHECK(training.trainer.step_count() == 1);
  CHECK(training.optimizer.updates(0) == 1);
}

TEST_CASE("trainer: a loss that turns infinite on the way names operation and module") {
  FormulaTraining overflow([](const Formula& model) { return sum(exp(model.used * 1000)); }, true);
  CHECK(expect::message<NonFiniteError>([&] { overflow.trainer.step(); }) ==
        "train: the loss of step 1 must be a finite number, got Infinity\n"
        "  first   exp [2], output: 1 of 2 numbers is not finite\n"
        "  Nothing was updated.");
}

TEST_CASE("trainer: check_non_finite names an operation whose NaN never reaches the loss") {
  // The NaN is masked away: the loss stays finite, and so do the gradients.
  const auto formula = [](const Formula& model) {
    const Tensor broken = log(model.used - 5);
    return sum(where(Tensor::of({0, 0}), broken, model.used));
  };
  FormulaTraining silent(formula, true);
  CHECK_NOTHROW(silent.trainer.step());
  FormulaTraining watched(formula, true, true);
  CHECK(expect::message<NonFiniteError>([&] { watched.trainer.step(); }) ==
        "train: the output of log of step 1 must be a finite number, got NaN\n"
        "  first   log [2], output: 2 of 2 numbers are not finite\n"
        "  Nothing was updated.");
  CHECK(watched.model.used.values() == std::vector<double>{0, 1});
}

TEST_CASE("trainer: H49 a gradient that is not finite stops before the update and is named") {
  // The square root of 0 + 0 * x by pow: value 0, derivative infinite.
  FormulaTraining training([](const Formula& model) { return sum(pow(model.used, 0.5)); }, true);
  CHECK(expect::message<NonFiniteError>([&] { training.trainer.step(); }) ==
        "train: the gradient norm of step 1 must be a finite number, got Infinity\n"
        "  first   used [2], a gradient: 1 of 2 numbers is not finite\n"
        "  Nothing was updated.");
  CHECK(training.model.used.values() == std::vector<double>{0, 1});
  CHECK(training.optimizer.state().empty());
}

TEST_CASE("trainer: a trainable parameter without a gradient is an error before the first update") {
  const Formula::Compute only_used = [](const Formula& model) { return sum(square(model.used)); };
  FormulaTraining training(only_used);
  CHECK(expect::message<UnusedParameterError>([&] { training.trainer.step(); }) ==
        "train: gain is trainable but got no gradient in step 1\n"
        "  gain [4]  of formula; the loss does not depend on it\n"
        "  also      shift\n"
        "  try       use it in forward(), or allow it: `set` train.allow_unused=true\n"
        "  Nothing was updated and nothing was saved.");
  CHECK(training.model.used.values() == std::vector<double>{0, 1});
  CHECK(training.trainer.step_count() == 0);

  FormulaTraining allowed(only_used, true);
  CHECK(allowed.trainer.step().skipped == std::vector<std::string>{"gain", "shift"});
  CHECK(allowed.trainer.step().skipped.empty());  // reported once
  allowed.trainer.run(3);
  CHECK(allowed.model.used.values()[1] < 0.7);
  CHECK(allowed.model.gain.values() == std::vector<double>{1, 1, 1, 1});

  FormulaTraining frozen(only_used);
  frozen.model.gain.freeze();
  frozen.model.shift.freeze();
  CHECK(frozen.trainer.step().step == 1);
}

TEST_CASE("trainer: observers see the gradients before the update and the weights after it") {
  struct Observer final : StepObserver {
    std::vector<std::string> calls;
    double before = 0, gradient = 0, after = 0;
    void begin(const Trainer& trainer, std::optional<double>) override {
      calls.push_back("begin " + std::to_string(trainer.step_count()));
    }
    void before_update(const Trainer& trainer, const StepReport& report) override {
      calls.push_back("before " + std::to_string(report.step));
      before = trainer.parameters()[0].parameter->array().value(1);
      gradient = trainer.parameters()[0].parameter->grad().value(1);
    }
    void after_step(const Trainer& trainer, const StepReport& report) override {
      calls.push_back("after " + std::to_string(report.step) + " of " + std::to_string(trainer.step_count()));
      after = trainer.parameters()[0].parameter->array().value(1);
    }
  };
  FormulaTraining training([](const Formula& model) { return sum(square(model.used)); }, true);
  Observer observer;
  training.trainer.add_observer(observer);
  training.trainer.run(2);
  CHECK(observer.calls ==
        std::vector<std::string>{"begin 0", "before 1", "after 1 of 1", "before 2", "after 2 of 2"});
  CHECK(observer.before == doctest::Approx(0.8));
  CHECK(observer.gradient == doctest::Approx(1.6));
  CHECK(observer.after == doctest::Approx(0.8 - 0.1 * (0.9 * 2 + 1.6)));
}

TEST_CASE("trainer: a stop request ends the run after the step it is in") {
  std::atomic<bool> stop{false};
  struct Stopper final : StepObserver {
    std::atomic<bool>& stop;
    explicit Stopper(std::atomic<bool>& flag) : stop(flag) {}
    void before_update(const Trainer&, const StepReport& report) override { stop = report.step == 2; }
  } stopper(stop);
  Training training({.trainer = {.stop = &stop}});
  training.trainer.add_observer(stopper);
  CHECK_FALSE(training.trainer.run(5));
  CHECK(training.trainer.step_count() == 2);
  CHECK(training.trainer.stop_requested());
  stop = false;
  CHECK(training.trainer.run(5));
  CHECK(training.trainer.step_count() == 5);
}

TEST_CASE("trainer: validation loss is the mean over all tokens, and leaves no trace") {
  const data::EvaluationWindows validation = windows(60, 3);  // 59 targets: 24 + 24 + 8 and 3
  Training watched({.drop_rate = 0.3, .validation = &validation});
  Training alone({.drop_rate = 0.3});
  for (int step = 0; step < 3; ++step) {
    const double loss = watched.trainer.validation_loss();
    CHECK(watched.trainer.validation_loss() == loss);  // H60: no dropout
    CHECK(watched.trainer.step().loss == alone.trainer.step().loss);
  }
  CHECK(toy::same_bits(watched.weights(), alone.weights()));

  watched.model.eval();
  double sum = 0;
  data::Batch batch;
  for (std::int64_t i = 0; i < validation.batches(); ++i) {
    validation.fill(batch, i);
    const Shape shape = {batch.rows, batch.cols};
    const Tensor logits = watched.model(Ids(batch.inputs, shape));
    sum += cross_entropy(logits, Ids(batch.targets, shape)).item() * static_cast<double>(batch.tokens());
  }
  CHECK(validation.tokens() == 59);
  CHECK(watched.trainer.validation_loss() == doctest::Approx(sum / 59).epsilon(1e-6));
  CHECK(watched.trainer.validation_loss(100) == watched.trainer.validation_loss());
  CHECK(watched.trainer.validation_loss(1) != watched.trainer.validation_loss());
  CHECK_FALSE(watched.trainer.step().validation_loss);
  const std::optional<double> after = watched.trainer.step(1).validation_loss;
  CHECK(after == watched.trainer.validation_loss(1));
  CHECK(watched.trainer.best_loss() == after);
  CHECK_FALSE(watched.model.training());  // it was in evaluation mode, and stays so
  CHECK_FALSE(alone.trainer.has_validation());
  CHECK_THROWS_AS(alone.trainer.validation_loss(), ValueError);
}

TEST_CASE(
    "trainer: dropout has other random numbers for every seed, step and micro-batch, and repeats them") {
  static std::vector<std::vector<double>> masks;  // of all steps, in order
  const auto masks_of = [](std::uint64_t seed) {
    masks.clear();
    Formula model([](const Formula& formula) {
      masks.push_back(dropout(Tensor::ones({64}), 0.5).values());
      return sum(square(formula.used));
    });
    toy::Rows rows(1, 2);
    Sgd optimizer(model.named_parameters(), {.lr = 0.1});
    const ConstantSchedule schedule({.lr = 0.1});
    Trainer(model, rows, optimizer, schedule, {.seed = seed, .allow_unused = true}).run(2);
    return masks;
  };
  const auto first = masks_of(1), again = masks_of(1), other = masks_of(2);
  REQUIRE(first.size() == 4);
  CHECK(first == again);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(first[i] != other[i]);
    for (std::size_t j = 0; j < i; ++j) CHECK(first[i] != first[j]);
  }
}

TEST_CASE("trainer: the best loss is the smallest, and never NaN") {
  Training training({});
  Trainer& trainer = training.trainer;
  CHECK_FALSE(trainer.keep_best(std::nan("")));
  CHECK_FALSE(trainer.best_loss().has_value());
  CHECK(trainer.keep_best(2));
  CHECK_FALSE(trainer.keep_best(2));
  CHECK_FALSE(trainer.keep_best(std::nan("")));
  CHECK(trainer.keep_best(1.5));
  CHECK(trainer.best_loss() == 1.5);
}

TEST_CASE("trainer: the same bits for 1, 2 and 3 threads, with dropout and accumulation") {
  const int before = thread_count();
  std::vector<Array> reference;
  std::vector<double> losses;
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    Training training({.drop_rate = 0.1, .micro_batches = 2, .trainer = {.seed = 7, .grad_clip = 1}});
    std::vector<double> now;
    for (int step = 0; step < 5; ++step) {
      const StepReport report = training.trainer.step();
      now.push_back(report.loss);
      now.push_back(report.grad_norm);
    }
    if (threads == 1) {
      reference = training.weights();
      losses = now;
    }
    CHECK(now == losses);
    CHECK(toy::same_bits(training.weights(), reference));
  }
  set_thread_count(before);
}

TEST_CASE("trainer: in steady state a step asks the system for no memory") {
#if defined(__SANITIZE_ADDRESS__)
  MESSAGE("skipped: blocks go back to the system at once, so that their use after release is seen");
  return;
#endif
  const int before = thread_count();
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    Training training({.drop_rate = 0.1, .micro_batches = 2, .trainer = {.grad_clip = 1}});
    for (int step = 0; step < 3; ++step) training.trainer.step();
    const std::uint64_t operator_new = cli::counted_allocations(), pool = pool_stats().system_allocations;
    for (int step = 0; step < 5; ++step) training.trainer.step();
    CHECK(operator_new > 0);  // they are counted
    CHECK(cli::counted_allocations() - operator_new == 0);
    CHECK(pool_stats().system_allocations - pool == 0);
  }
  set_thread_count(before);
}

TEST_CASE("trainer: one batch is learned by heart") {
  data::Batch batch;
  batch.resize(4, 8);
  Random random(3);
  for (std::int32_t& id : batch.inputs) id = static_cast<std::int32_t>(random.below(17));
  for (std::int32_t& id : batch.targets) id = static_cast<std::int32_t>(random.below(17));
  // Rows that begin alike could not be told apart at their first token.
  for (std::int32_t row = 0; row < 4; ++row) batch.inputs[static_cast<std::size_t>(8 * row)] = row;
  data::FixedBatch same(batch);
  models::GptModel model(toy::config(), 1);
  Adam adamw(model.named_parameters(), {.lr = 1e-2}, Decay::decoupled);
  const ConstantSchedule schedule({.lr = 1e-2});
  Trainer trainer(model, same, adamw, schedule, {});
  const double start = trainer.step().loss;
  CHECK(start > 2);
  trainer.run(300);
  CHECK(trainer.step().loss < 0.02);
}
