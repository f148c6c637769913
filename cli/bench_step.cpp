// bench step: whole training steps of a config.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include <nlohmann/json.hpp>

#include "handgrad/core/kernels/peak.h"

#include "handgrad/cli/bench.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/parallel.h"

namespace handgrad::cli {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Floating-point operations in a second that all threads together can do; the best of several tries.
template <class T>
double peak_flops() {
  constexpr std::int64_t kTurns = 400000;
  const int threads = thread_count();
  std::vector<double> done(static_cast<std::size_t>(threads));
  double best = 0;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const auto start = Clock::now();
    parallel_for(threads, [&](std::int64_t i) {
      T sink;
      done[static_cast<std::size_t>(i)] = HANDGRAD_ACTIVE(multiply_adds<T>)(kTurns, &sink);
    });
    double sum = 0;
    for (const double flops : done) sum += flops;
    best = std::max(best, sum / (ms_since(start) * 1e-3));
  }
  return best;
}

double peak_rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::uint64_t allocations_so_far() {
  return pool_stats().system_allocations + (&counted_allocations != nullptr ? counted_allocations() : 0);
}

struct Timing {
  std::vector<double> samples;  // ms a step
  std::int64_t steps = 0;
  double allocations = 0;
};

Timing time_steps(train::Trainer& trainer, const StepBenchOptions& options) {
  const auto warm_up = Clock::now();
  int steps = 0;
  while (steps < 3 || ms_since(warm_up) < options.warm_up_ms) {
    trainer.step();
    ++steps;
  }
  const double ms = ms_since(warm_up) / steps;
  const int steps_per_sample = std::max(1, static_cast<int>(std::lround(options.sample_ms / ms)));
  Timing timing;
  timing.samples.reserve(static_cast<std::size_t>(options.samples));
  const std::uint64_t allocations = allocations_so_far();
  for (int sample = 0; sample < options.samples; ++sample) {
    const auto start = Clock::now();
    for (int i = 0; i < steps_per_sample; ++i) trainer.step();
    timing.samples.push_back(ms_since(start) / steps_per_sample);
  }
  timing.steps = std::int64_t{options.samples} * steps_per_sample;
  timing.allocations = static_cast<double>(allocations_so_far() - allocations);
  std::sort(timing.samples.begin(), timing.samples.end());
  return timing;
}

}  // namespace

double step_flops(models::Model& model, std::int64_t rows, std::int64_t cols) {
  double flops = 0;
  for (const nn::NamedModule& named : model.modules()) flops += named.module->flops_per_token(cols);
  return 3 * flops * static_cast<double>(rows * cols);  // backward: two products for each of forward
}

StepTime bench_step(train::Run& run, std::string config, const StepBenchOptions& options) {
  const data::BatchPlan& plan = run.plan();
  train::Trainer& trainer = run.trainer();
  const bool wide = run.settings().dtype == DType::float64;
  const double peak_before = wide ? peak_flops<double>() : peak_flops<float>();
  const Timing timing = time_steps(trainer, options);
  const double peak = std::max(peak_before, wide ? peak_flops<double>() : peak_flops<float>());

  StepTime time;
  time.config = std::move(config);
  time.threads = thread_count();
  time.ms = timing.samples[timing.samples.size() / 2];
  time.ms_min = timing.samples.front();
  time.ms_max = timing.samples.back();
  const auto micro_batches = static_cast<double>(plan.micro_batches);
  time.tokens_per_s = static_cast<double>(plan.tokens()) / (time.ms * 1e-3);
  const double flops_per_s = micro_batches * step_flops(run.model(), plan.rows, plan.cols) / (time.ms * 1e-3);
  time.gflops = flops_per_s * 1e-9;
  time.percent_of_peak = 100 * flops_per_s / peak;
  time.peak_rss_mib = peak_rss_mib();
  time.allocations_per_step = timing.allocations / static_cast<double>(timing.steps);
  return time;
}

std::string table(const StepTime& time) {
  return fmt::format(
      "one training step of {}, {} thread{}\n\n"
      "  time         {:.3f} ms   (median; {:.3f} to {:.3f})\n"
      "  speed        {:.0f} tokens/s\n"
      "  products     {:.1f} GFLOP/s, {:.1f}% of the {:.1f} that these threads can do\n"
      "  memory       {:.1f} MiB at most\n"
      "  allocations  {:g} a step\n",
      time.config, time.threads, time.threads == 1 ? "" : "s", time.ms, time.ms_min, time.ms_max,
      time.tokens_per_s, time.gflops, time.percent_of_peak, 100 * time.gflops / time.percent_of_peak,
      time.peak_rss_mib, time.allocations_per_step);
}

nlohmann::ordered_json to_json(const StepTime& time) {
  return {{"config", time.config},
          {"threads", time.threads},
          {"ms", time.ms},
          {"ms_min", time.ms_min},
          {"ms_max", time.ms_max},
          {"tokens_per_s", time.tokens_per_s},
          {"gflops", time.gflops},
          {"percent_of_peak", time.percent_of_peak},
          {"peak_rss_mib", time.peak_rss_mib},
          {"allocations_per_step", time.allocations_per_step}};
}

}  // namespace handgrad::cli
