// Learning-rate schedules.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "expect.h"
#include "handgrad/optim/schedule.h"

using namespace handgrad;
using namespace handgrad::optim;

TEST_CASE("schedule: H51 the warm-up begins above 0 and reaches the highest rate once") {
  const ScheduleOptions options{.lr = 6e-4, .min_lr = 6e-5, .warmup_steps = 2000, .decay_steps = 600000};
  for (const Schedule* schedule : {static_cast<const Schedule*>(new CosineSchedule(options)),
                                   static_cast<const Schedule*>(new LinearSchedule(options))}) {
    CAPTURE(schedule->type());
    CHECK(schedule->lr(0) == 6e-4 * 1 / 2001);
    CHECK(schedule->lr(0) == doctest::Approx(2.9985e-7).epsilon(1e-4));
    CHECK(schedule->lr(1999) == 6e-4 * 2000 / 2001);
    CHECK(schedule->lr(2000) == 6e-4);
    CHECK(schedule->lr(2001) < 6e-4);
    delete schedule;
  }
}

TEST_CASE("schedule: constant is lr at every step after the warm-up") {
  const ConstantSchedule plain({.lr = 0.1});
  for (const std::int64_t step : {0, 1, 1000000}) CHECK(plain.lr(step) == 0.1);
  const ConstantSchedule warm({.lr = 0.1, .min_lr = 0.01, .warmup_steps = 4, .decay_steps = 10});
  CHECK(warm.lr(0) == doctest::Approx(0.02));
  CHECK(warm.lr(3) == doctest::Approx(0.08));
  for (const std::int64_t step : {4, 9, 10, 11, 1000}) CHECK(warm.lr(step) == 0.1);
}

TEST_CASE("schedule: linear and cosine by hand") {
  const ScheduleOptions options{.lr = 1, .min_lr = 0.2, .warmup_steps = 2, .decay_steps = 10};
  const LinearSchedule linear(options);
  const CosineSchedule cosine(options);
  // t = (step - 2) / 8
  CHECK(linear.lr(4) == doctest::Approx(0.2 + 0.8 * 0.75).epsilon(1e-15));
  CHECK(linear.lr(6) == doctest::Approx(0.6).epsilon(1e-15));
  CHECK(linear.lr(9) == doctest::Approx(0.3).epsilon(1e-15));
  CHECK(cosine.lr(4) == doctest::Approx(0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2).epsilon(1e-15));
  CHECK(cosine.lr(6) == doctest::Approx(0.6).epsilon(1e-15));
  CHECK(cosine.lr(8) == doctest::Approx(0.2 + 0.8 * (1 - std::sqrt(0.5)) / 2).epsilon(1e-15));
  for (const Schedule* schedule :
       {static_cast<const Schedule*>(&linear), static_cast<const Schedule*>(&cosine)}) {
    CHECK(schedule->lr(2) == 1);
    CHECK(schedule->lr(9) > 0.2);
    CHECK(schedule->lr(10) == 0.2);
    CHECK(schedule->lr(11) == 0.2);
    CHECK(schedule->lr(1000000) == 0.2);
  }
}

TEST_CASE("schedule: a decay that ends within the warm-up goes to the lowest rate at once") {
  const CosineSchedule schedule({.lr = 1, .min_lr = 0.5, .warmup_steps = 3, .decay_steps = 3});
  CHECK(schedule.lr(2) == 0.75);
  CHECK(schedule.lr(3) == 0.5);
}

TEST_CASE("schedule: numbers out of range are rejected by name") {
  const auto error_of = [](const ScheduleOptions& options) {
    return expect::message<ValueError>([&] { ConstantSchedule schedule(options); });
  };
  CHECK(error_of({.lr = -1}) == "schedule: lr must be a finite number of at least 0, got -1");
  CHECK(error_of({.lr = std::numeric_limits<double>::infinity()}) ==
        "schedule: lr must be a finite number of at least 0, got inf");
  CHECK(error_of({.lr = 1, .min_lr = 2}) == "schedule: min_lr must be at most lr = 1, got 2");
  CHECK(error_of({.lr = 1, .min_lr = std::nan("")}) ==
        "schedule: min_lr must be a finite number of at least 0, got nan");
  CHECK(error_of({.lr = 1, .warmup_steps = -1}) ==
        "schedule: warmup_steps and decay_steps must be at least 0, got -1 and 0");
}
