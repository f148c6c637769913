#include "handgrad/view/explain/model_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "handgrad/core/error.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/recording.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

namespace fs = std::filesystem;

/// The complete checkpoint of the highest step up to `most`.
std::optional<fs::path> nearest_checkpoint(const fs::path& run, std::int64_t most) {
  std::optional<fs::path> nearest;
  std::int64_t nearest_step = -1;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "checkpoints", missing)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-") || !fs::exists(entry.path() / "state.json")) continue;
    const std::int64_t step = train::read_checkpoint_state(entry.path()).step;
    if (step > most || step <= nearest_step || name != train::checkpoint_name(step)) continue;
    nearest_step = step;
    nearest = entry.path();
  }
  return nearest;
}

[[noreturn]] void throw_step(const fs::path& run, std::int64_t step, std::int64_t last,
                             std::int64_t planned) {
  const std::string name = run.string();
  throw Error("explain " + name,
              fmt::format("no step {}; {}", step,
                          planned > last ? fmt::format("this run is at step {} of {}", last, planned)
                                         : fmt::format("this run has {} steps", last)),
              {},
              planned > last ? fmt::format("finish it first: {} train --resume {}", io::program_name(),
                                           io::shell_word(name))
                             : fmt::format("--step {}", last));
}

/// The last step whose values the run recorded: of one that was killed, or goes on, later than its last checkpoint.
std::int64_t recorded_steps(const fs::path& folder) {
  if (!fs::exists(folder / train::kRecordingFile)) return 0;
  const std::vector<std::int64_t> steps = train::Recording(folder / train::kRecordingFile).steps();
  return steps.empty() ? 0 : steps.back();
}

/// Whether the parameters that the run recorded have the values that were recorded at that step.
void check_recording(const fs::path& folder, const train::Run& run, std::int64_t step) {
  if (!fs::exists(folder / train::kRecordingFile)) return;
  const train::Recording recording(folder / train::kRecordingFile);
  if (!recording.has_values(step)) return;
  for (std::size_t i = 0; i < recording.parameters().size(); ++i) {
    const std::string& name = recording.parameters()[i].name;
    const Parameter* parameter = run.model().find_parameter(name);
    if (parameter == nullptr || parameter->values() == recording.read(i, step).value) continue;
    throw Error("explain " + folder.string(),
                fmt::format("repeating the run does not give the {} that it recorded at step {}", name, step),
                {},
                "--step of a checkpoint; a run that began with --weights, or on a processor without fused "
                "multiply-adds, cannot be repeated from its config");
  }
}

}  // namespace

ModelState restore(const fs::path& run_or_config, const std::vector<std::string>& sets,
                   std::optional<std::int64_t> step, const std::function<void(train::Run&)>& check) {
  const bool is_run = fs::is_directory(run_or_config);
  if (is_run && !fs::is_regular_file(run_or_config / "config.json"))
    throw Error("explain",
                fmt::format("'{}' holds no run: there is no config.json in it", run_or_config.string()), {},
                "the folder of a run, such as runs/toy");
  const auto latest = is_run ? train::find_latest(run_or_config) : std::nullopt;
  train::RunContext context;
  if (latest)
    context.tokenizer =
        train::read_checkpoint_state(*latest).tokenizer;  // the text may have been edited since
  ModelState state;
  std::optional<fs::path> from;
  if (is_run) {
    const std::int64_t saved = latest ? train::read_checkpoint_state(*latest).step : 0;
    state.last = std::max(saved, recorded_steps(run_or_config));
    state.step = step.value_or(saved);
    from = nearest_checkpoint(run_or_config, state.step);
  } else {
    state.step = step.value_or(0);
  }
  context.weights_follow = from.has_value();
  state.run = std::make_unique<train::Run>(
      train::ConfigDocument::load(is_run ? run_or_config / "config.json" : run_or_config, sets), context);
  train::Run& run = *state.run;
  check(run);
  if (!is_run) state.last = run.steps();
  if (state.step > state.last) throw_step(run_or_config, state.step, state.last, run.steps());
  if (from && train::read_checkpoint_state(*from).step == state.step) {
    train::load_weights(*from, run.model());  // in any element type
    run.trainer().restore(state.step, std::nullopt);
  } else if (from) {
    train::load_checkpoint(*from, run.trainer());
  }
  const std::int64_t start = run.trainer().step_count();
  if (start < state.step) {
    run.trainer().run(state.step);
    state.origin = fmt::format("{} from step {} to {}", is_run ? "re-run" : "trained", start, state.step);
  } else {
    state.origin = from ? "weights from checkpoint " + from->filename().string() : "first weights";
  }
  if (is_run && !sets.empty())
    state.origin += fmt::format(", not the run's own: with {}", listed(sets, "and"));
  if (is_run && sets.empty()) check_recording(run_or_config, run, state.step);
  return state;
}

}  // namespace handgrad::view::explain
