// The optimizers and schedules that a config may name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/io/registry.h"
#include "handgrad/optim/optimizer.h"
#include "handgrad/optim/schedule.h"

namespace handgrad::optim {

/// sgd, adam, adamw (the default), and what a program adds:
///
///     {"type": "adamw", "lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0}
///     {"type": "sgd", "lr": 1e-2, "momentum": 0, "dampening": 0, "nesterov": false, "weight_decay": 0}
io::Registry<Optimizer, const Parameters&>& optimizers();

/// How sentences call an optimizer: "AdamW"; its type when its row gives no label.
std::string label_of(std::string_view type);
/// The names under which registered optimizers keep such a moment.
std::vector<std::string> states_of(Moment moment);

/// What a schedule's factory is told by the run it is part of.
struct ScheduleContext {
  double lr = 0;           ///< the optimizer's
  std::int64_t steps = 0;  ///< of the run: default of the key decay_steps
};

/// constant (the default), linear, cosine, and what a program adds:
///
///     {"type": "cosine", "warmup_steps": 0, "min_lr": 0, "decay_steps": 300}
io::Registry<Schedule, const ScheduleContext&>& schedules();

}  // namespace handgrad::optim
