#include "handgrad/train/open_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/io/files.h"
#include "handgrad/io/program_name.h"
#include "handgrad/models/model.h"
#include "handgrad/models/weights.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/run_folder.h"

namespace handgrad::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// `folder` if it is a checkpoint's, else the last checkpoint of the run in it. Error when there is neither.
fs::path checkpoint_of(const fs::path& folder) {
  if (fs::exists(folder / kStateFile) || fs::exists(folder / kModelFile)) return folder;
  reject_older_run(folder);
  if (auto latest = find_latest(folder)) return *latest;
  if (!fs::exists(folder)) io::throw_file(folder, "does not exist", "the folder of a run, such as runs/toy");
  if (!fs::exists(folder / "config.json"))
    io::throw_file(folder, "has neither a run nor a checkpoint", "the folder of a run, such as runs/toy");
  io::throw_file(
      folder, "has no checkpoint: the run ended before its first save",
      fmt::format("begin again: `handgrad` train {} `overwrite` `out` {}",
                  io::shell_word((folder / "config.json").string()), io::shell_word(folder.string())));
}

/// The checkpoint of the highest step up to `most`; empty when there is none.
fs::path nearest_checkpoint(const fs::path& folder, std::int64_t most) {
  const std::vector<std::int64_t> steps = steps_of_checkpoints(folder);
  const auto beyond = std::upper_bound(steps.begin(), steps.end(), most);
  return beyond == steps.begin() ? fs::path() : folder / "checkpoints" / checkpoint_name(*(beyond - 1));
}

void add_config_changes(const Json& before, const Json& now, std::vector<std::string>& lines) {
  const Json old_keys = before.flatten(), new_keys = now.flatten();
  const auto value = [](const Json& keys, const std::string& key) {
    return keys.contains(key) ? keys[key].dump() : std::string("not given");
  };
  Json all = old_keys;
  all.update(new_keys);
  for (const auto& [pointer, unused] : all.items()) {
    const std::string was = value(old_keys, pointer), is = value(new_keys, pointer);
    if (was != is && pointer != "/train/stop_after")
      lines.push_back(fmt::format("{} was {}, is {}", pointer, was, is));
  }
}

std::vector<std::string> changes_of(const CheckpointState& state, const Run& run) {
  std::vector<std::string> lines;
  add_config_changes(Json::parse(state.config), run.effective(), lines);
  if (const std::string now = run.origin().data; now != state.data)
    lines.push_back(fmt::format("the data were {}, are {}", state.data, now));
  return lines;
}

void load_state(OpenedRun& opened, const CheckpointState& state, const OpenOptions& options) {
  Run& run = *opened.run;
  if (!options.weights.empty()) {
    load_weights(options.weights, run.model());
  } else if (!options.resume && options.step.value_or(state.step) == state.step) {
    load_weights(opened.checkpoint, run.model());  // in any element type
    run.trainer().restore(state.step, state.best_loss);
  } else {
    load_checkpoint(opened.checkpoint, run.trainer());
  }
}

}  // namespace

OpenedRun open_run(const fs::path& folder, const OpenOptions& options) {
  reject_older_run(folder);
  OpenedRun opened;
  opened.checkpoint = options.step ? nearest_checkpoint(folder, *options.step) : checkpoint_of(folder);
  std::optional<CheckpointState> state;
  if (!opened.checkpoint.empty()) state = read_checkpoint_state(opened.checkpoint);
  RunContext context{.stop = options.stop};
  if (state) {
    context.tokenizer = state->tokenizer;
  } else if (const auto latest = find_latest(folder)) {
    context.tokenizer = read_checkpoint_state(*latest).tokenizer;
  }
  context.weights_follow = !options.weights.empty() || (state && !options.first_weights);
  opened.run = std::make_unique<Run>(options.config != nullptr
                                         ? *options.config
                                         : ConfigDocument::load(folder / "config.json", options.sets),
                                     context);
  if (options.check) options.check(*opened.run);
  if (options.first_weights) return opened;
  if (state) {
    load_state(opened, *state, options);
    if (options.resume) opened.changes = changes_of(*state, *opened.run);
  }
  Trainer& trainer = opened.run->trainer();
  opened.repeated_from = trainer.step_count();
  trainer.run(options.step.value_or(opened.repeated_from));
  return opened;
}

std::unique_ptr<Run> new_run(const ConfigDocument& config, const fs::path& weights,
                             const std::atomic<bool>* stop) {
  auto run = std::make_unique<Run>(config, RunContext{.stop = stop, .weights_follow = !weights.empty()});
  if (!weights.empty()) load_weights(weights, run->model());
  return run;
}

TrainedModel open_model(const fs::path& folder) {
  const fs::path checkpoint = checkpoint_of(folder);
  const CheckpointState state = read_checkpoint_state(checkpoint);
  const auto document = ConfigDocument::from_json(Json::parse(state.config), checkpoint, kStateFile);
  io::Fields root = document.fields(io::Purpose::build);
  io::Fields section = root.object("model"), train = root.object("train");
  TrainedModel trained;
  trained.tokenizer = state.tokenizer;
  trained.model =
      models::make(section, models::ModelContext{state.tokenizer ? state.tokenizer->vocab_size() : 0});
  trained.model->to(read_train(train).dtype);
  load_weights(checkpoint, *trained.model);
  return trained;
}

void load_weights(const fs::path& path, models::Model& model) {
  if (!fs::exists(path))
    io::throw_file(path, "does not exist", "a run's folder, a checkpoint's, or a safetensors file");
  const models::WeightsFile weights(fs::is_directory(path) ? checkpoint_of(path) / kModelFile : path, model,
                                    models::AcceptTypes::any_float);
  weights.assign(weights.read());
}

}  // namespace handgrad::train
