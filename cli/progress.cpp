#include "handgrad/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "handgrad/cli/terminal.h"
#include "handgrad/core/error.h"
#include "handgrad/optim/registry.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kLiveInterval = 100ms;  // a line that changes more often cannot be read

/// 0, 1, 2, 5, 10, 20, 50, ...
bool is_row_step(std::int64_t step) {
  while (step >= 10 && step % 10 == 0) step /= 10;
  return step == 0 || step == 1 || step == 2 || step == 5;
}

std::string time_left(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

Pace Pace::parse(const std::string& text) {
  Pace pace;
  if (text.empty()) return pace;
  if (text == "key") {
    pace.by_key = true;
    return pace;
  }
  std::size_t used = 0;
  try {
    pace.steps_per_second = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || !(pace.steps_per_second > 0) || !std::isfinite(pace.steps_per_second))
    throw ValueError("train", fmt::format("--pace must be steps per second or 'key', got '{}'", text), {},
                     "--pace 20 or --pace key");
  return pace;
}

Progress::Progress(const train::Run& run, ProgressOptions options)
    : run_(run),
      options_(std::move(options)),
      movement_(run, options_.recording),
      layout_(layout_for(movement_, terminal_columns())),
      on_terminal_(is_terminal(stderr) && is_terminal(stdout)) {}

void Progress::row(std::int64_t step, std::optional<double> loss,
                   std::optional<double> validation_loss) const {
  fmt::print("{}", row_text(movement_, layout_, step, loss, validation_loss));
  std::fflush(stdout);
}

void Progress::begin(const train::Trainer& trainer, std::optional<double> validation_loss) {
  first_step_ = trainer.step_count();
  first_loss_ = last_loss_ = validation_loss;
  start_ = last_live_ = next_step_ = Clock::now();
  if (options_.quiet) return wait(first_step_);
  fmt::print("{}", describe(run_, options_.title, options_.notes, terminal_columns()));
  fmt::print("\n{}", rows_heading(movement_, layout_));
  row(first_step_, std::nullopt, validation_loss);
  wait(first_step_);
}

void Progress::after_step(const train::Trainer& /*trainer*/, const train::StepReport& report) {
  if (report.validation_loss) last_loss_ = report.validation_loss;
  if (options_.quiet) return wait(report.step);
  if (report.step == 1) explain_first_step(report);
  if (is_row_step(report.step) || report.step == run_.last_step() || options_.pace.by_key) {
    clear_line();
    row(report.step, report.loss, report.validation_loss);
  }
  if (report.step < run_.last_step()) {
    live(report);
    return wait(report.step);
  }
  clear_line();
  if (!first_step_note_.empty()) fmt::print("\n{}", first_step_note_);
}

/// Explains Adam's first step, in which all features move alike, whatever their gradients; only when it is so.
void Progress::explain_first_step(const train::StepReport& report) {
  const auto* optimizer = optim::optimizers().find(run_.trainer().optimizer().type());
  if (optimizer == nullptr || !optimizer->traits.first_step_is_lr) return;
  std::size_t alike = 0, all = 0;
  for (const TrackedParameter& m : movement_.parameters()) {
    for (std::size_t i = 0; i < m.start.size(); ++i, ++all)
      if (std::abs(std::abs(m.parameter->array().value(static_cast<std::int64_t>(i)) - m.start[i]) /
                       report.lr -
                   1) < 0.01)
        ++alike;
  }
  if (all == 0 || alike < all) return;
  first_step_note_ =
      "  " +
      view::wrapped(
          fmt::format(
              "At step 1 every feature moved by {:.4f}, the learning rate: {}'s first step has that size "
              "whatever the gradient. With SGD it would be lr * gradient (configs/toy_sgd.json).",
              report.lr, optimizer->traits.label),
          2, std::min<std::size_t>(terminal_columns(), 92)) +
      "\n";
}

void Progress::live(const train::StepReport& report) {
  const auto now = Clock::now();
  if (!on_terminal_ || now - last_live_ < kLiveInterval) return;
  last_live_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(report.step - first_step_) / seconds;
  std::string line =
      fmt::format("{:>5}/{}  loss {:.3f}  lr {:.4g}", report.step, run_.last_step(), report.loss, report.lr);
  if (!options_.pace.by_key)  // else the time is the user's
    line +=
        fmt::format("  {}  {} left",
                    options_.pace.steps_per_second > 0
                        ? fmt::format("{:.0f} steps/s (paced)", rate)
                        : fmt::format("{:.0f} tokens/s", rate * static_cast<double>(run_.plan().tokens())),
                    time_left(static_cast<double>(run_.last_step() - report.step) / rate));
  if (const TrackedParameter* m = movement_.farthest()) {
    const train::Statistics s = m->statistics();
    line += fmt::format("   {}[{}] {:.3f}", m->name, s.farthest, s.farthest_value);
  }
  const std::size_t columns = terminal_columns();
  if (line.size() >= columns) line.resize(columns - 1);
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
  line_shown_ = true;
}

void Progress::clear_line() {
  if (!line_shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  line_shown_ = false;
}

/// Ctrl-C ends a wait too: the trainer then stops before its next step.
void Progress::wait(std::int64_t step) {
  const auto stop = [&] { return run_.trainer().stop_requested(); };
  if (step == run_.last_step()) return;
  if (options_.pace.by_key && !wait_for_enter(stop)) {
    options_.pace.by_key = false;
    if (!stop()) fmt::print(stderr, "standard input has ended: no more waiting for Enter\n");
  }
  if (options_.pace.steps_per_second <= 0) return;
  if (step == first_step_) next_step_ = Clock::now();
  next_step_ += std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(1 / options_.pace.steps_per_second));
  while (Clock::now() < next_step_ && !stop())
    std::this_thread::sleep_until(std::min(next_step_, Clock::now() + 50ms));
}

void Progress::finished() const {
  if (options_.quiet) return;
  if (!movement_.empty()) fmt::print("\n{}", final_table(movement_, run_.trainer().step_count(), layout_));
  if (first_loss_ && last_loss_) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    fmt::print("\nvalidation loss: {:.3f} -> {:.3f}, in {:.1f} s\n", *first_loss_, *last_loss_, seconds);
  }
}

}  // namespace handgrad::cli
