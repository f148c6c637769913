// bench: the overhead of an operation, measured on tensors so small that arithmetic takes no time; and whole training
// steps of a config.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include <nlohmann/json.hpp>

#include "handgrad/cli/bench.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/kernels/peak.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"
#include "handgrad/view/table.h"

namespace handgrad::cli {
namespace {

using Clock = std::chrono::steady_clock;

// ---- Operations

constexpr int kChain = 1000;
constexpr int kSamples = 21;
constexpr int kWarmUp = 5;

/// Median time of a call in nanoseconds.
template <class Work>
double median_ns(const Work& work) {
  for (int i = 0; i < kWarmUp; ++i) work();
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    const auto start = Clock::now();
    work();
    samples.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
  return samples[kSamples / 2];
}

/// `step` maps a tensor of the shape of `x` to another one of that shape.
template <class Step>
OpTime time_chain(const char* op, const Tensor& start, const Step& step) {
  pool_trim();  // so that blocks are adjacent in memory, as in a program that does only this
  Tensor x = start;
  x.requires_grad();
  const Array dy = Array::full(x.shape(), 1);
  const auto chain = [&] {
    Tensor y = x;
    for (int i = 0; i < kChain; ++i) y = step(y);
    return y;
  };
  OpTime time{op, x.shape().text()};
  time.no_graph_ns = median_ns([&] {
                       const NoGrad no_grad;
                       chain();
                     }) /
                     kChain;
  time.forward_ns = median_ns([&] { chain(); }) / kChain;
  time.both_ns = median_ns([&] {
                   x.zero_grad();
                   chain().backward(dy);
                 }) /
                 kChain;
  return time;
}

}  // namespace

std::vector<OpTime> bench_ops() {
  const Tensor four = Tensor::of({2, 2, 6, 6}), matrix = Tensor::of({{2, 2, 6, 6}});
  const Tensor small = Tensor::full({4}, 0.001);
  Tensor scale = Tensor::ones({4}), shift = Tensor::zeros({4}), weight = Tensor::full({4, 4}, 0.25);
  for (Tensor* parameter : {&scale, &shift, &weight}) parameter->requires_grad();
  return {
      time_chain("add", four, [&](const Tensor& x) { return x + small; }),
      time_chain("add a number", four, [](const Tensor& x) { return x + 0.001; }),
      time_chain("mul", four, [&](const Tensor& x) { return x * scale; }),
      time_chain("gelu", four, [](const Tensor& x) { return gelu(x); }),
      time_chain("softmax", four, [](const Tensor& x) { return softmax(x); }),
      time_chain("layer_norm", four, [&](const Tensor& x) { return layer_norm(x, scale, shift); }),
      time_chain("layer_norm_composed", four,
                 [&](const Tensor& x) { return layer_norm_composed(x, scale, shift); }),
      time_chain("linear", matrix, [&](const Tensor& x) { return linear(x, weight); }),
  };
}

std::string table(const std::vector<OpTime>& times) {
  view::Table rows({{"operation", view::Align::left, 20},
                    {"shape", view::Align::left, 7, 1},
                    {"no graph", view::Align::right, 9, 1},
                    {"forward", view::Align::right, 9, 1},
                    {"forward + backward", view::Align::right, 19, 1}});
  for (const OpTime& time : times)
    rows.add({time.op, time.shape, fmt::format("{:.1f}", time.no_graph_ns),
              fmt::format("{:.1f}", time.forward_ns), fmt::format("{:.1f}", time.both_ns)});
  return "nanoseconds for one operation, in a chain of 1000; the median of 21 chains\n\n" + rows.text();
}

nlohmann::ordered_json to_json(const std::vector<OpTime>& times) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const OpTime& time : times) {
    rows.push_back({{"op", time.op},
                    {"shape", time.shape},
                    {"no_graph_ns", time.no_graph_ns},
                    {"forward_ns", time.forward_ns},
                    {"both_ns", time.both_ns}});
  }
  return rows;
}

// ---- Steps

namespace {

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
