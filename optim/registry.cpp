#include "handgrad/optim/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "handgrad/optim/adam.h"
#include "handgrad/optim/sgd.h"

namespace handgrad::optim {
namespace {

double read_lr(io::Fields& fields, double fallback) {
  return fields.number(
      "lr", {.doc = "learning rate; a schedule starts from it", .fallback = fallback, .at_least = 0});
}

double read_weight_decay(io::Fields& fields, const char* doc) {
  return fields.number("weight_decay", {.doc = doc, .fallback = 0, .at_least = 0});
}

std::unique_ptr<Optimizer> make_sgd(io::Fields& fields, const Parameters& parameters) {
  SgdOptions options;
  options.lr = read_lr(fields, options.lr);
  options.momentum = fields.number(
      "momentum",
      {.doc = "part of the last velocity that is kept", .fallback = 0, .at_least = 0, .less_than = 1});
  options.dampening =
      fields.number("dampening", {.doc = "part of the gradient that does not enter the velocity",
                                  .fallback = 0,
                                  .at_least = 0,
                                  .less_than = 1});
  options.nesterov = fields.boolean(
      "nesterov", {.doc = "step as if the velocity were one gradient further", .fallback = false});
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    fields.throw_error("nesterov", fmt::format("needs momentum above 0 and dampening 0, got {} and {}",
                                               options.momentum, options.dampening));
  }
  options.weight_decay =
      read_weight_decay(fields, "times the value, added to the gradient; for parameters of rank 2 or more");
  return std::make_unique<Sgd>(parameters, options);
}

template <Decay decay>
std::unique_ptr<Optimizer> make_adam(io::Fields& fields, const Parameters& parameters) {
  AdamOptions options;
  options.lr = read_lr(fields, options.lr);
  const std::vector<double> betas = fields.numbers(
      "betas", {.doc = "how much of the running means of gradient and squared gradient is kept",
                .fallback = std::vector<double>{options.betas[0], options.betas[1]},
                .size = 2,
                .at_least = 0,
                .less_than = 1});
  options.betas = {betas[0], betas[1]};
  options.eps = fields.number(
      "eps",
      {.doc = "added to the root of the mean squared gradient", .fallback = options.eps, .at_least = 0});
  options.weight_decay = read_weight_decay(
      fields, decay == Decay::coupled
                  ? "times the value, added to the gradient; for parameters of rank 2 or more"
                  : "times lr and the value, subtracted from the value; for parameters of rank 2 or more");
  return std::make_unique<Adam>(parameters, options, decay);
}

template <class Kind>
std::unique_ptr<Schedule> make_schedule(io::Fields& fields, const ScheduleContext& context) {
  ScheduleOptions options{.lr = context.lr};
  options.warmup_steps = fields.integer(
      "warmup_steps", {.doc = "steps in which the rate rises, lr * (step + 1) / (warmup_steps + 1)",
                       .fallback = 0,
                       .at_least = 0});
  options.min_lr = fields.number(
      "min_lr", {.doc = "where the rate ends; a constant one stays at lr", .fallback = 0, .at_least = 0});
  if (options.min_lr > context.lr && !fields.describing_only()) {
    fields.throw_error("min_lr", fmt::format("must be at most lr = {}, got {}", context.lr, options.min_lr));
  }
  options.decay_steps =
      fields
          .optional_integer(
              "decay_steps",
              {.doc = "the step at which the rate is min_lr; train.steps if not given", .at_least = 0})
          .value_or(context.steps);
  return std::make_unique<Kind>(options);
}

}  // namespace

io::Registry<Optimizer, const Parameters&>& optimizers() {
  const std::vector<OptimizerState> moments(std::begin(Adam::kStates), std::end(Adam::kStates));
  static io::Registry<Optimizer, const Parameters&> registry(
      "optimizer", "adamw",
      {{"sgd", make_sgd, "against the gradient, with momentum if wanted", {"SGD", {Sgd::kMomentum}}},
       {"adam",
        make_adam<Decay::coupled>,
        "steps of about lr for every parameter, whatever its gradient's size",
        {"Adam", moments, true}},
       {"adamw",
        make_adam<Decay::decoupled>,
        "Adam, with weight decay apart from the gradient",
        {"AdamW", moments, true}}});
  return registry;
}

std::string label_of(std::string_view type) {
  const auto* row = optimizers().find(type);
  return row == nullptr || row->traits.label.empty() ? std::string(type) : row->traits.label;
}

std::vector<std::string> states_of(Moment moment) {
  std::vector<std::string> names;
  for (const auto& row : optimizers().rows())
    for (const OptimizerState& state : row.traits.states)
      if (state.moment == moment && std::find(names.begin(), names.end(), state.name) == names.end())
        names.emplace_back(state.name);
  return names;
}

io::Registry<Schedule, const ScheduleContext&>& schedules() {
  static io::Registry<Schedule, const ScheduleContext&> registry(
      "schedule", "constant",
      {{"constant", make_schedule<ConstantSchedule>, "the same rate at every step after the warm-up"},
       {"linear", make_schedule<LinearSchedule>, "a straight line from lr to min_lr"},
       {"cosine", make_schedule<CosineSchedule>, "half a turn of a cosine from lr to min_lr"}});
  return registry;
}

}  // namespace handgrad::optim
