#include "handgrad/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "handgrad/core/autograd.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"
#include "handgrad/core/random.h"
#include "handgrad/optim/optimizer.h"

namespace handgrad::train {
namespace {

std::int64_t counted_targets(const data::Batch& batch) {
  return std::count_if(batch.targets.begin(), batch.targets.end(),
                       [](std::int32_t target) { return target != kIgnoreIndex; });
}

Tensor loss_of_batch(models::Model& model, const data::Batch& batch, double divisor) {
  const Shape shape = {batch.rows, batch.cols};
  return model.loss(Ids(batch.inputs.data(), shape), Ids(batch.targets.data(), shape), divisor);
}

// A divisor of 0 would make a NaN of nothing.
double divisor_for(std::int64_t tokens) { return static_cast<double>(std::max<std::int64_t>(tokens, 1)); }

}  // namespace

Trainer::Trainer(models::Model& model, data::Dataset& training, optim::Optimizer& optimizer,
                 const optim::Schedule& schedule, const TrainerOptions& options,
                 const data::EvaluationWindows* validation)
    : model_(model),
      training_(training),
      optimizer_(optimizer),
      schedule_(schedule),
      options_(options),
      validation_(validation),
      parameters_(model.named_parameters()),
      batches_(static_cast<std::size_t>(training.plan().micro_batches)) {
  optim::require_at_least_0("trainer", "grad_clip", options.grad_clip);
}

StepReport Trainer::step(std::optional<std::int64_t> validation_batches) {
  const FlushSubnormals flush;
  const bool first = !begun_;
  begin();
  StepReport report{.step = step_ + 1, .lr = schedule_.lr(step_), .tokens = read_batches()};
  report.loss = options_.check_non_finite ? watched_forward_and_backward(report.tokens)
                                          : forward_and_backward(report.tokens);
  if (first && !options_.allow_unused) check_unused();
  const optim::GradientNorm norm = global_norm_(parameters_);
  check_norm(norm, report.tokens);
  report.grad_norm = norm.norm;
  report.clip_factor = optim::clip_factor(norm.norm, options_.grad_clip);
  for (StepObserver* observer : observers_) observer->before_update(*this, report);
  optimizer_.step(report.lr, report.clip_factor);
  report.skipped = optimizer_.take_skipped();
  ++step_;
  if (validation_batches && has_validation()) {
    report.validation_loss = validation_loss(*validation_batches);
    keep_best(*report.validation_loss);
  }
  for (StepObserver* observer : observers_) observer->after_step(*this, report);
  return report;
}

bool Trainer::run(std::int64_t last) {
  while (step_ < last && !stop_requested()) step();
  return step_ >= last;
}

void Trainer::begin(std::optional<double> validation_loss) {
  if (begun_) return;
  model_.train();
  for (StepObserver* observer : observers_) observer->begin(*this, validation_loss);
  begun_ = true;
}

// All micro-batches at once: the divisor of their losses is the number of targets in all of them.
std::int64_t Trainer::read_batches() {
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    training_.fill(batches_[i], {.step = step_, .micro_batch = static_cast<std::int64_t>(i)});
    tokens += counted_targets(batches_[i]);
  }
  return tokens;
}

Tensor Trainer::loss_of(std::size_t micro_batch, std::int64_t tokens) {
  set_random_context({.seed = options_.seed,
                      .step = static_cast<std::uint32_t>(step_),
                      .micro_batch = static_cast<std::uint32_t>(micro_batch)});
  return loss_of_batch(model_, batches_[micro_batch], divisor_for(tokens));
}

double Trainer::forward_and_backward(std::int64_t tokens) {
  model_.zero_grad();
  double sum = 0;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    const Tensor loss = loss_of(i, tokens);
    sum += loss.item();
    if (!std::isfinite(sum)) {
      NonFinite found = find_in_parameters(parameters_);
      if (found.count == 0) found = find_again(tokens);
      model_.zero_grad();
      throw NonFiniteError("loss", sum, step_ + 1, std::move(found));
    }
    loss.backward();
  }
  return sum;
}

double Trainer::watched_forward_and_backward(std::int64_t tokens) {
  NonFiniteObserver observer;
  const GraphObserverGuard guard(observer);
  const double loss = forward_and_backward(tokens);
  if (observer.first().count == 0) return loss;
  model_.zero_grad();
  throw NonFiniteError(observer.first().what + " of " + observer.first().tensor, std::nan(""), step_ + 1,
                       observer.first());
}

void Trainer::check_unused() const {
  std::vector<nn::NamedParameter> unused;
  for (const nn::NamedParameter& named : parameters_) {
    if (!named.parameter->frozen() && !named.parameter->has_grad()) unused.push_back(named);
  }
  if (!unused.empty()) throw UnusedParameterError(unused, step_ + 1);
}

void Trainer::check_norm(const optim::GradientNorm& norm, std::int64_t tokens) {
  if (std::isfinite(norm.norm)) [[likely]]
    return;
  NonFinite found = find_in_gradients(parameters_);
  const NonFinite source = find_again(tokens);
  model_.zero_grad();
  if (source.count > 0) found.module = source.what + " of " + source.tensor + " in " + source.module;
  throw NonFiniteError("gradient norm", norm.norm, step_ + 1, std::move(found));
}

// Repeats the step and observes every operation: the numbers are equal, so it fails in the same place.
NonFinite Trainer::find_again(std::int64_t tokens) {
  NonFiniteObserver observer;
  const GraphObserverGuard guard(observer);
  model_.zero_grad();
  for (std::size_t i = 0; i < batches_.size() && observer.first().count == 0; ++i)
    loss_of(i, tokens).backward();
  return observer.first();
}

double Trainer::validation_loss(std::int64_t max_batches) {
  if (validation_ == nullptr)
    throw ValueError("trainer", "validation_loss needs validation data, there is none");
  const FlushSubnormals flush;
  const NoGrad no_grad;
  const nn::EvalMode eval_mode(model_);
  const std::int64_t batches =
      max_batches > 0 ? std::min(max_batches, validation_->batches()) : validation_->batches();
  double sum = 0;
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    validation_->fill(validation_batch_, i);
    sum += loss_of_batch(model_, validation_batch_, 1).item();
    tokens += counted_targets(validation_batch_);
  }
  return sum / divisor_for(tokens);
}

bool Trainer::keep_best(double loss) {
  if (!(loss < best_loss_.value_or(std::numeric_limits<double>::infinity()))) return false;
  best_loss_ = loss;
  return true;
}

void Trainer::restore(std::int64_t step_count, std::optional<double> best_loss) {
  step_ = step_count;
  best_loss_ = best_loss;
}

}  // namespace handgrad::train
