// Schedule: the learning rate of each step.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace handgrad::optim {

/// What every schedule is made of. Steps count from 0: the first update is made with the rate of step 0.
struct ScheduleOptions {
  double lr = 0;                  ///< the highest rate, the optimizer's
  double min_lr = 0;              ///< where the decay ends
  std::int64_t warmup_steps = 0;  ///< steps below the highest rate
  std::int64_t decay_steps = 0;   ///< the step at which the decay has ended: usually the run's length
};

/// Warm-up, then a decay:
///
///     lr * (step + 1) / (warmup_steps + 1)    for step = 0 .. warmup_steps - 1: never 0
///     min_lr + (lr - min_lr) * shape(t)       then, t = (step - warmup_steps) / (decay_steps - warmup_steps)
///     min_lr                                  from decay_steps on
///
/// The same bits on every platform.
class Schedule {
 public:
  /// ValueError unless 0 <= min_lr <= lr, both finite, and 0 <= warmup_steps. decay_steps <= warmup_steps
  /// means that min_lr follows the warm-up at once.
  explicit Schedule(const ScheduleOptions& options);
  virtual ~Schedule() = default;

  double lr(std::int64_t step) const;                          ///< of the update number `step` + 1
  const ScheduleOptions& options() const { return options_; }  ///< as they were given
  /// The name under which configs know it.
  virtual std::string_view type() const = 0;

 private:
  /// 1 at t = 0; called for 0 <= t < 1.
  virtual double shape(double t) const = 0;
  /// Whether the rate ever falls; a constant one stays at lr after the warm-up.
  virtual bool decays() const { return true; }

  ScheduleOptions options_;
};

/// lr at every step after the warm-up; min_lr and decay_steps play no part. The default.
class ConstantSchedule final : public Schedule {
 public:
  using Schedule::Schedule;
  std::string_view type() const override { return "constant"; }

 private:
  double shape(double) const override { return 1; }
  bool decays() const override { return false; }
};

/// shape(t) = 1 - t
class LinearSchedule final : public Schedule {
 public:
  using Schedule::Schedule;
  std::string_view type() const override { return "linear"; }

 private:
  double shape(double t) const override { return 1 - t; }
};

/// shape(t) = (1 + cos(pi * t)) / 2
class CosineSchedule final : public Schedule {
 public:
  using Schedule::Schedule;
  std::string_view type() const override { return "cosine"; }

 private:
  double shape(double t) const override;
};

}  // namespace handgrad::optim
