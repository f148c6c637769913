// Opening the run in a folder: its config, its tokenizer, and its weights after a step.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/train/run.h"

namespace handgrad::train {

/// Which state of a run, and what differs from what its folder says.
struct OpenOptions {
  std::optional<std::int64_t> step = {};    ///< updates made; none: those of the last checkpoint
  std::vector<std::string> sets = {};       ///< keys of the config to override
  const ConfigDocument* config = nullptr;   ///< in place of the run's config and `sets`
  std::filesystem::path weights = {};       ///< in place of those of the checkpoint
  bool first_weights = false;               ///< leaves the checkpoint's weights out, and step 0
  bool resume = false;                      ///< with the optimizer's state, to continue training
  const std::atomic<bool>* stop = nullptr;  ///< see TrainerOptions
  std::function<void(Run&)> check =
      {};  ///< sees the run before weights are read or steps repeated; may throw
};

/// A run as it was after one of its steps.
struct OpenedRun {
  std::unique_ptr<Run> run;          ///< its trainer is at that step
  std::filesystem::path checkpoint;  ///< where the weights were read; empty: they are first weights
  std::int64_t repeated_from = 0;    ///< steps since this one were repeated
  /// "train.steps was 300, is 500": of a resumed run, where config and data are not those of the checkpoint.
  std::vector<std::string> changes;
};

/// Opens the run in `folder`, after `step` at once where there is a checkpoint of it, else by repeating the steps since
/// the checkpoint before, or since the first weights, which gives the same bits. Token ids mean what they meant in the
/// run, even if its text was edited since. Error when there is no checkpoint and no `step`, when an older handgrad wrote
/// the run, or when its config, its data or its checkpoint cannot be read.
OpenedRun open_run(const std::filesystem::path& folder, const OpenOptions& options = {});

/// A run at step 0: with the weights of a file as load_weights reads them, or, without `weights`, with first weights.
std::unique_ptr<Run> new_run(const ConfigDocument& config, const std::filesystem::path& weights,
                             const std::atomic<bool>* stop = nullptr);

/// A trained model without its run: neither its data nor the optimizer's state are read.
struct TrainedModel {
  std::unique_ptr<models::Model> model;              ///< with its trained weights
  std::shared_ptr<const data::Tokenizer> tokenizer;  ///< nullptr when its ids are not text
};

/// The model in the last checkpoint of a run's folder, or in the folder of one checkpoint. Error when there is none, or
/// when it is damaged or its config describes another model.
TrainedModel open_model(const std::filesystem::path& folder);

/// Only the weights, from a safetensors file, a checkpoint's folder or a run's (its last checkpoint); the errors of
/// load_checkpoint.
void load_weights(const std::filesystem::path& path, models::Model& model);

}  // namespace handgrad::train
