#include "handgrad/optim/schedule.h"

#include <fmt/format.h>

#include "handgrad/core/error.h"
#include "handgrad/core/random.h"
#include "handgrad/optim/optimizer.h"

namespace handgrad::optim {

Schedule::Schedule(const ScheduleOptions& options) : options_(options) {
  require_at_least_0("schedule", "lr", options.lr);
  require_at_least_0("schedule", "min_lr", options.min_lr);
  if (options.min_lr > options.lr) {
    throw ValueError("schedule",
                     fmt::format("min_lr must be at most lr = {}, got {}", options.lr, options.min_lr));
  }
  if (options.warmup_steps < 0 || options.decay_steps < 0) {
    throw ValueError("schedule", fmt::format("warmup_steps and decay_steps must be at least 0, got {} and {}",
                                             options.warmup_steps, options.decay_steps));
  }
}

double Schedule::lr(std::int64_t step) const {
  const auto& [lr, min_lr, warmup_steps, decay_steps] = options_;
  if (step < warmup_steps) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup_steps + 1);
  if (!decays()) return lr;
  if (step >= decay_steps) return min_lr;
  const double t = static_cast<double>(step - warmup_steps) / static_cast<double>(decay_steps - warmup_steps);
  return min_lr + (lr - min_lr) * shape(t);
}

double CosineSchedule::shape(double t) const { return (1 + portable_cos_turns(t / 2)) / 2; }

}  // namespace handgrad::optim
