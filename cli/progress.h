// What a training run shows: a heading, rows that stay, a line that lives, and the table at the end.
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/cli/movement.h"
#include "handgrad/train/session.h"

namespace handgrad::cli {

/// How fast a run may go, for viewers. It only waits; it changes no number.
struct Pace {
  double steps_per_second = 0;  ///< 0: as fast as it can
  bool by_key = false;          ///< one step for each Enter
  /// "20" or "key"; ValueError for anything else.
  static Pace parse(const std::string& text);
};

struct ProgressOptions {
  bool quiet = false;
  Pace pace;
  std::string title;                ///< the run's name, "toy"
  std::filesystem::path recording;  ///< a resumed run's: where its parameters began
  std::vector<std::string> notes;   ///< things to tell the user once
};

/// The observer of a run that prints; `run` must outlive it.
class Progress final : public train::StepObserver {
 public:
  Progress(const train::Run& run, ProgressOptions options);

  void begin(const train::Trainer& trainer, std::optional<double> validation_loss) override;
  void after_step(const train::Trainer& trainer, const train::StepReport& report) override;

  /// The table of where everything ended, and the loss before and after.
  void finished() const;
  const Movement& movement() const { return movement_; }
  /// Takes the live line away, so that other text can be written.
  void clear_line();

 private:
  using Clock = std::chrono::steady_clock;

  void row(std::int64_t step, std::optional<double> loss, std::optional<double> validation_loss) const;
  void explain_first_step(const train::StepReport& report);
  void live(const train::StepReport& report);
  void wait(std::int64_t step);

  const train::Run& run_;
  ProgressOptions options_;
  Movement movement_;
  Layout layout_;
  bool on_terminal_, line_shown_ = false;
  std::string first_step_note_;
  std::optional<double> first_loss_, last_loss_;
  std::int64_t first_step_ = 0;
  Clock::time_point start_, last_live_, next_step_;
};

/// What the run is made of, four lines, broken so that they fit.
std::string describe(const train::Run& run, const std::string& title, const std::vector<std::string>& notes,
                     std::size_t columns);

/// Prints the run's description, the table of its parameters, the memory it needs and the time that a few real steps
/// take. The steps are left out when the memory of this machine is too small for them. `title`: the run's name.
void dry_run(const train::Run& run, const std::string& title);

}  // namespace handgrad::cli
