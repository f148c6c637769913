// Checkpoints: all that a run needs to resume as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/data/tokenizer.h"
#include "handgrad/train/trainer.h"

namespace handgrad::train {

/// @{ Weights and the optimizer's state in a checkpoint's folder.
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
/// @}
inline constexpr const char* kStateFile = "state.json";  ///< what CheckpointState holds, in the same folder

/// "step-000100"
std::string checkpoint_name(std::int64_t step);

/// Where a trainer's state comes from: what the weights mean, kept with them.
struct CheckpointOrigin {
  const nlohmann::ordered_json* config = nullptr;  ///< the effective config; nullptr: there is none
  const data::Tokenizer* tokenizer = nullptr;      ///< which text each id stands for; nullptr: none
  std::string data = {};                           ///< DataSource::fingerprint()
};

/// Writes the folder `checkpoints`/step-000100 for the trainer's state after update 100 and gives its path:
///
///     model.safetensors       every parameter by name, tied ones once
///     optimizer.safetensors   moments and counts of updates
///     state.json              format and library version, step, seed, place in the data, best loss, `origin`
///
/// It is written beside under another name, flushed to the disk, then renamed, so that there is a complete
/// folder or none whatever happens in between; what an interrupted call left is removed first. A complete
/// folder of the same step is replaced. Equal states give equal bytes: no clock, no host name. Error with
/// path and reason when the disk is full or something else cannot be written; then nothing that was there
/// before has changed.
std::filesystem::path save_checkpoint(const std::filesystem::path& checkpoints, const Trainer& trainer,
                                      const CheckpointOrigin& origin = {});

/// What state.json says.
struct CheckpointState {
  int format_version = 0;                            ///< of the folder
  std::string library_version;                       ///< of the library that wrote it
  std::int64_t step = 0;                             ///< updates made
  std::uint64_t seed = 0;                            ///< of the run
  std::string optimizer;                             ///< its type
  std::optional<double> best_loss;                   ///< of all evaluations so far; none before the first
  std::string config;                                ///< JSON; "null" without one
  std::shared_ptr<const data::Tokenizer> tokenizer;  ///< nullptr when the ids are not text
  std::string data;                                  ///< fingerprint of the data; empty when it has none
};
/// Error when it is missing, damaged, or of a newer format.
CheckpointState read_checkpoint_state(const std::filesystem::path& checkpoint);

/// Restores weights, optimizer, step and best loss. Error, before anything has changed, when a file is
/// missing or damaged, when the optimizer is of another type, or when the parameters differ:
///
///     runs/toy/checkpoints/step-000100/model.safetensors: 2 missing, 1 unexpected, 1 wrong shape
///       missing     trf_blocks.11.norm2.scale, trf_blocks.11.norm2.shift
///       unexpected  trf_blocks.11.ln_2.weight
///       wrong shape tok_emb.weight: file [50304, 768], model [50257, 768]
CheckpointState load_checkpoint(const std::filesystem::path& checkpoint, Trainer& trainer);

/// The complete checkpoint of the highest step in `run`/checkpoints; none when there is none. Unfinished
/// folders are passed over.
std::optional<std::filesystem::path> find_latest(const std::filesystem::path& run);

/// Steps of the complete checkpoints in `run`/checkpoints, rising.
std::vector<std::int64_t> steps_of_checkpoints(const std::filesystem::path& run);

}  // namespace handgrad::train
