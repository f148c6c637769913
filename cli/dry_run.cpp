#include "handgrad/cli/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "handgrad/cli/progress.h"
#include "handgrad/cli/terminal.h"
#include "handgrad/core/dtype.h"
#include "handgrad/core/memory.h"
#include "handgrad/view/summary.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

constexpr int kTimedSteps = 3;
constexpr double kEnoughSeconds = 3;  // one step of this length says as much as three

double bytes_of(const train::Run& run, bool trainable_only) {
  double bytes = 0;
  for (const auto& named : run.model().named_parameters())
    if (!trainable_only || !named.parameter->frozen())
      bytes += static_cast<double>(named.parameter->numel()) *
               static_cast<double>(size_of(named.parameter->dtype()));
  return bytes;
}

std::vector<double> time_steps(train::Trainer& trainer) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  // The first step asks the system for memory and is not like the others, so it is no more than a rehearsal.
  for (int i = 0; i <= kTimedSteps; ++i) {
    const auto start = Clock::now();
    trainer.step();
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    if (i > 0 || took > kEnoughSeconds) seconds.push_back(took);
    if (took > kEnoughSeconds) break;
  }
  return seconds;
}

void print_time(const train::Run& run, std::vector<double> seconds) {
  std::string list;
  for (const double s : seconds) list += (list.empty() ? "" : ", ") + view::duration_text(s);
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                   seconds.end());
  const double middle = seconds[seconds.size() / 2];
  const auto tokens = static_cast<double>(run.plan().tokens());
  fmt::print("time      {} {}: {}; {} tokens/s\n", seconds.size(),
             seconds.size() == 1 ? "step took" : "steps took", list,
             view::grouped(static_cast<std::int64_t>(tokens / middle)));
  fmt::print("          {} take {}, evaluations and checkpoints not counted\n",
             view::plural(run.last_step(), "step", "steps"),
             view::duration_text(middle * static_cast<double>(run.last_step())));
}

}  // namespace

void dry_run(const train::Run& run, const std::string& title) {
  fmt::print("{}\n{}\n", describe(run, title, run.notes(), terminal_columns()), view::summary(run.model()));
  const double weights = bytes_of(run, false), gradients = bytes_of(run, true);
  fmt::print("memory    {} of weights, {} of gradients\n", view::bytes_text(weights),
             view::bytes_text(gradients));
  std::fflush(stdout);

  // Two moments and the activations are added to what is allocated so far: four times the weights is a low guess.
  const double wanted = gradients + 2 * weights, available = available_memory();
  if (wanted > available) {
    fmt::print("          {} more are needed at least, {} are free: no step was tried\n",
               view::bytes_text(wanted), view::bytes_text(available));
    return;
  }
  const auto seconds = time_steps(run.trainer());
  double moments = 0;
  for (const auto& named : run.trainer().optimizer().state())
    moments += static_cast<double>(named.array.numel()) * static_cast<double>(size_of(named.array.dtype()));
  const auto pooled = static_cast<double>(pool_stats().bytes_from_system);
  fmt::print("          {} of {}, {} of activations and work space\n", view::bytes_text(moments),
             "the optimizer's state",
             view::bytes_text(std::max(0.0, pooled - weights - gradients - moments)));
  print_time(run, seconds);
  fmt::print("\nNothing was written.\n");
}

}  // namespace handgrad::cli
