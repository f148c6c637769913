// A run before it trains: what is trained, on what, how; and what it needs (train --dry-run).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "handgrad/cli/progress.h"
#include "handgrad/cli/terminal.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/parallel.h"
#include "handgrad/optim/registry.h"
#include "handgrad/view/summary.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

using Json = nlohmann::ordered_json;

using view::grouped;

std::string model_line(const train::Run& run) {
  const Json& model = run.effective()["model"];
  const std::int64_t count = run.model().parameter_count();
  if (model.value("type", "") != "gpt")
    return fmt::format("{}: {} parameters", run.model().type(), grouped(count));
  return fmt::format(
      "{}, width {}, {}, context {}: {} parameters",
      view::plural(model["n_layers"].get<std::int64_t>(), "transformer block", "transformer blocks"),
      model["emb_dim"].get<std::int64_t>(),
      view::plural(model["n_heads"].get<std::int64_t>(), "head", "heads"), run.model().context_length(),
      grouped(count));
}

/// "192 of them are scale and shift: 32 + 32 in norm1, norm2 and final_norm"
std::string inspected_line(const train::Run& run) {
  const Movement movement(run);
  if (movement.empty()) return "";
  std::int64_t count = 0;
  std::vector<std::string> sizes, owners;
  for (const TrackedParameter& m : movement.parameters()) count += m.parameter->numel();
  for (const std::string& kind : movement.kinds())
    if (const TrackedParameter* m = movement.find(kind, movement.owners().front()))
      sizes.push_back(grouped(m->parameter->numel()));
  for (const std::string& owner : movement.owners()) owners.push_back(view::last_part(owner));
  const std::string text =
      fmt::format("{} of them are {}", grouped(count), fmt::join(movement.kinds(), " and "));
  if (owners.size() > 4) return text + fmt::format(", in {} modules", owners.size());
  return text + fmt::format(": {} in {}", fmt::join(sizes, " + "), view::listed(owners, "and"));
}

std::string data_line(const train::Run& run) {
  const data::OpenedData& data = run.data();
  if (run.source().tokenizer() == nullptr)
    return data.training_tokens > 0
               ? fmt::format("one batch of {}", view::plural(data.training_tokens, "token", "tokens"))
               : fmt::format("random tokens, {} different", grouped(run.model().vocab_size()));
  return fmt::format("{} characters, {} different; {} for training, {} for validation",
                     grouped(data.training_tokens + data.validation_tokens),
                     grouped(run.source().vocab_size()), grouped(data.training_tokens),
                     grouped(data.validation_tokens));
}

std::string training_line(const train::Run& run) {
  const optim::Schedule& schedule = run.trainer().schedule();
  const std::string name = optim::label_of(run.trainer().optimizer().type());
  const std::string rate =
      schedule.type() == "constant"
          ? fmt::format("lr {:g}", schedule.options().lr)
          : fmt::format("lr {:g} falling to {:g}", schedule.options().lr, schedule.options().min_lr);
  return fmt::format("{} steps of {} of {} {}, {}, {}, {}", grouped(run.steps()),
                     view::plural(run.plan().rows * run.plan().micro_batches, "row", "rows"), run.plan().cols,
                     run.source().tokenizer() != nullptr && run.source().tokenizer()->type() == "char"
                         ? "characters"
                         : "tokens",
                     name, rate, view::plural(thread_count(), "thread", "threads"));
}

}  // namespace

std::string describe(const train::Run& run, const std::string& title, const std::vector<std::string>& notes,
                     std::size_t columns) {
  const std::size_t width = std::max<std::size_t>(title.size(), 8);
  std::string text;
  const auto add = [&](const std::string& name, const std::string& what) {
    text += fmt::format("{:<{}}  {}\n", name, width, view::wrapped(what, width + 2, columns));
  };
  add(title, model_line(run));
  if (const std::string line = inspected_line(run); !line.empty()) add("", line);
  add("text", data_line(run));
  add("training", training_line(run));
  for (const std::string& note : notes) add("note", note);
  if (!run.frozen().empty())
    add("note", view::plural(static_cast<std::int64_t>(run.frozen().size()), "parameter is frozen",
                             "parameters are frozen"));
  return text;
}

// ---- A dry run

namespace {

constexpr int kTimedSteps = 3;
constexpr double kEnoughSeconds = 3;  // after a step of this length, no more are timed

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
  // The first step allocates memory and is not timed.
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
  std::vector<std::string> list;
  for (const double s : seconds) list.push_back(view::duration_text(s));
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                   seconds.end());
  const double middle = seconds[seconds.size() / 2];
  const auto tokens = static_cast<double>(run.plan().tokens());
  fmt::print("time      {} {}: {}; {} tokens/s\n", seconds.size(),
             seconds.size() == 1 ? "step took" : "steps took", fmt::join(list, ", "),
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

  // Still to be allocated: gradients, two moments and the activations, which this estimate leaves out.
  const double wanted = gradients + 2 * weights, available = available_memory();
  if (wanted > available) {
    fmt::print("          at least {} more are needed, {} are free: no step was timed\n",
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
