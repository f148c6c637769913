// A run in the state after one of its steps.
#include "handgrad/view/explain/model_row.h"

#include <fmt/format.h>

#include <algorithm>

#include "handgrad/core/error.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/open_run.h"
#include "handgrad/train/recording.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_step(const fs::path& run, std::int64_t step, std::int64_t last,
                             std::int64_t planned) {
  const std::string name = run.string();
  throw Error("explain " + name,
              fmt::format("no step {}; {}", step,
                          planned > last ? fmt::format("this run is at step {} of {}", last, planned)
                                         : fmt::format("this run has {} steps", last)),
              {},
              planned > last
                  ? fmt::format("finish it first: `handgrad` train `resume` {}", io::shell_word(name))
                  : fmt::format("`step` {}", last));
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
                "`step` of a checkpoint; a run that began with `weights`, or on a processor without fused "
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
  ModelState state;
  const auto checked = [&](train::Run& run) {
    check(run);
    if (!is_run) state.last = run.steps();
    if (state.step > state.last) throw_step(run_or_config, state.step, state.last, run.steps());
  };
  train::OpenedRun opened;
  if (is_run) {
    const std::vector<std::int64_t> saved = train::steps_of_checkpoints(run_or_config);
    state.step = step.value_or(saved.empty() ? 0 : saved.back());
    // In a killed or running run the last recorded step is later than the last checkpoint.
    state.last = saved.empty() ? 0 : saved.back();
    if (fs::exists(run_or_config / train::kRecordingFile))
      state.last = std::max(state.last, train::Recording(run_or_config / train::kRecordingFile).last_step());
    opened = train::open_run(run_or_config, {.step = state.step, .sets = sets, .check = checked});
  } else {
    state.step = step.value_or(0);
    opened.run = std::make_unique<train::Run>(train::ConfigDocument::load(run_or_config, sets));
    checked(*opened.run);
    opened.run->trainer().run(state.step);
  }
  state.run = std::move(opened.run);
  train::Run& run = *state.run;
  if (opened.repeated_from < state.step) {
    state.origin =
        fmt::format("{} from step {} to {}", is_run ? "re-run" : "trained", opened.repeated_from, state.step);
  } else {
    state.origin = opened.checkpoint.empty()
                       ? "first weights"
                       : "weights from checkpoint " + opened.checkpoint.filename().string();
  }
  if (is_run && !sets.empty())
    state.origin += fmt::format(", not the run's own: with {}", listed(sets, "and"));
  if (is_run && sets.empty()) check_recording(run_or_config, run, state.step);
  return state;
}

}  // namespace handgrad::view::explain
