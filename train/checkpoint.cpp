#include "handgrad/train/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/data/text.h"
#include "handgrad/io/files.h"
#include "handgrad/io/json_text.h"
#include "handgrad/io/safetensors.h"
#include "handgrad/models/weights.h"
#include "handgrad/train/version.h"

namespace handgrad::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
constexpr std::string_view kPrefix = "step-";

/// The step of a folder with the name of a checkpoint; none for any other name.
std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + 6 || name.size() > kPrefix.size() + 18)
    return {};
  std::int64_t step = 0;
  for (const char c : name.substr(kPrefix.size())) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return {};
    step = 10 * step + (c - '0');
  }
  return step;
}

void remove_unfinished(const fs::path& checkpoints) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints)) {
    if (entry.path().filename().string().ends_with(io::kUnfinished)) fs::remove_all(entry.path(), ignored);
  }
}

Json state_of(const Trainer& trainer, const CheckpointOrigin& origin) {
  const std::int64_t step = trainer.step_count();
  Json state;
  state["format_version"] = kFormatVersion;
  state["library_version"] = kVersion;
  state["step"] = step;
  state["random"] = {{"seed", trainer.options().seed}, {"step", step}};
  state["data"] = {{"step", step}, {"micro_batch", 0}, {"fingerprint", origin.data}};
  state["optimizer"] = trainer.optimizer().type();
  state["best_loss"] = trainer.best_loss() ? Json(*trainer.best_loss()) : Json(nullptr);
  state["tokenizer"] = origin.tokenizer == nullptr ? Json(nullptr) : Json(origin.tokenizer->to_json());
  state["config"] = origin.config == nullptr ? Json(nullptr) : *origin.config;
  return state;
}

void write_files(const fs::path& folder, const Trainer& trainer, const CheckpointOrigin& origin) {
  io::write_safetensors(folder / kModelFile, models::weights_of(trainer.parameters()), {{"format", "pt"}});
  io::write_safetensors(folder / kOptimizerFile, trainer.optimizer().state());
  io::DurableFile state(folder / kStateFile);
  state.write(state_of(trainer, origin).dump(2) + "\n");
  state.finish();
  io::sync_folder(folder);
}

/// Moves the finished folder to its place by one exchange of names. An old folder there is removed afterwards.
void put_in_place(const fs::path& unfinished, const fs::path& place) {
  if (!fs::exists(place)) {
    fs::rename(unfinished, place);
    return;
  }
  if (renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) != 0) {
    // Not every file system can exchange two names.
    if (errno != EINVAL && errno != ENOSYS) io::throw_file(place, "cannot be replaced", errno);
    fs::remove_all(place);
    fs::rename(unfinished, place);
    return;
  }
  std::error_code ignored;
  fs::remove_all(unfinished, ignored);
}

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("{}{:06}", kPrefix, step); }

fs::path save_checkpoint(const fs::path& checkpoints, const Trainer& trainer,
                         const CheckpointOrigin& origin) {
  const fs::path place = checkpoints / checkpoint_name(trainer.step_count());
  fs::path unfinished = place;
  unfinished += io::kUnfinished;
  try {
    fs::create_directories(checkpoints);
    remove_unfinished(checkpoints);
    fs::create_directory(unfinished);
    write_files(unfinished, trainer, origin);
    put_in_place(unfinished, place);
    io::sync_folder(checkpoints);
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    const auto* system = dynamic_cast<const fs::filesystem_error*>(&error);
    if (system != nullptr) io::throw_file(place, "cannot be written: " + system->code().message());
    throw;
  }
  return place;
}

CheckpointState read_checkpoint_state(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kStateFile;
  const std::string text = io::read_text_file(path).text;
  try {
    const Json json = Json::parse(text);
    CheckpointState state;
    state.format_version = json.at("format_version").get<int>();
    if (state.format_version > kFormatVersion) {
      io::throw_file(path, fmt::format("has format version {}, this program knows versions up to {}",
                                       state.format_version, kFormatVersion));
    }
    state.library_version = json.at("library_version").get<std::string>();
    state.step = json.at("step").get<std::int64_t>();
    state.seed = json.at("random").at("seed").get<std::uint64_t>();
    state.optimizer = json.at("optimizer").get<std::string>();
    if (!json.at("best_loss").is_null()) state.best_loss = json.at("best_loss").get<double>();
    state.config = json.at("config").dump();
    state.data = json.at("data").value("fingerprint", "");
    if (const auto tokenizer = json.find("tokenizer"); tokenizer != json.end() && !tokenizer->is_null())
      state.tokenizer = data::tokenizer_from_json(nlohmann::json(*tokenizer));
    if (state.step < 0) io::throw_file(path, fmt::format("step must be at least 0, got {}", state.step));
    return state;
  } catch (const Error& error) {
    io::throw_file(path, fmt::format("is damaged: {}: {}", error.op(), error.message()));
  } catch (const Json::exception& error) {
    io::throw_file(path, "is damaged: " + io::without_id(error.what()));
  }
}

CheckpointState load_checkpoint(const fs::path& checkpoint, Trainer& trainer) {
  CheckpointState state = read_checkpoint_state(checkpoint);
  if (state.optimizer != trainer.optimizer().type()) {
    io::throw_file(checkpoint, fmt::format("holds the state of optimizer {}, this run has {}",
                                           state.optimizer, trainer.optimizer().type()));
  }
  const models::WeightsFile weights(checkpoint / kModelFile, trainer.model(), models::AcceptTypes::same);
  const std::vector<Array> numbers = weights.read();
  const io::SafetensorsReader optimizer(checkpoint / kOptimizerFile);
  trainer.optimizer().load_state(optimizer.read_all(), optimizer.path().string());
  weights.assign(numbers);
  trainer.restore(state.step, state.best_loss);
  return state;
}

std::vector<std::int64_t> steps_of_checkpoints(const fs::path& run) {
  std::vector<std::int64_t> steps;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "checkpoints", missing)) {
    const std::string name = entry.path().filename().string();
    const std::optional<std::int64_t> step = step_of(name);
    if (step && name == checkpoint_name(*step) && fs::exists(entry.path() / kStateFile))
      steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<fs::path> find_latest(const fs::path& run) {
  const std::vector<std::int64_t> steps = steps_of_checkpoints(run);
  if (steps.empty()) return std::nullopt;
  return run / "checkpoints" / checkpoint_name(steps.back());
}

}  // namespace handgrad::train
