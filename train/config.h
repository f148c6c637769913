// The config of a run: one JSON file, with single keys overridden on the command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/io/fields.h"
#include "handgrad/train/trainer.h"

namespace handgrad::train {

/// The text of a config, before anything in it has been looked at.
class ConfigDocument {
 public:
  /// Reads a file and applies `sets`, each "train.steps=500". A value is JSON, or else a text. ConfigError for a file that
  /// is not JSON and a set that is not KEY=VALUE; Error for one that cannot be read.
  static ConfigDocument load(const std::filesystem::path& file, const std::vector<std::string>& sets = {});
  /// The config that a file in a run folder holds, with its paths as they were.
  static ConfigDocument from_json(const nlohmann::ordered_json& root, const std::filesystem::path& folder,
                                  const char* file = "config.json");

  ConfigDocument(const ConfigDocument&) = default;  ///< copies share the text
  ~ConfigDocument();

  /// A new reading: nothing is noted as read yet.
  io::Fields fields(io::Purpose purpose) const;
  /// The folder that relative paths in the config start from.
  const std::filesystem::path& folder() const { return folder_; }
  const std::string& name() const { return source_.file; }  ///< the file, as messages name it

 private:
  ConfigDocument(nlohmann::ordered_json root, io::Source source, std::filesystem::path folder);

  std::shared_ptr<const nlohmann::json> root_;
  io::Source source_;
  std::filesystem::path folder_;
};

/// Makes each value of a key "path" absolute, or `value` itself if it `is_path`. Relative paths start at `folder`.
void make_paths_absolute(nlohmann::ordered_json& value, const std::filesystem::path& folder,
                         bool is_path = false);

/// Where a value in force came from: "default", "file" (the one that is read, `file`) or "command line".
std::string origin_text(const io::Key& key, const std::string& file);

/// The section "train".
struct TrainSettings {
  std::int64_t steps = 0;       ///< 0: counted in epochs
  std::int64_t epochs = 0;      ///< 0: counted in steps
  std::int64_t stop_after = 0;  ///< 0: at the end
  /// @{ Rows of a micro-batch, and micro-batches of an update.
  std::int64_t batch_size = 0, accumulate = 0;
  /// @}
  std::vector<std::string> freeze;  ///< patterns (io/pattern.h)
  /// @{ 0: evaluated at the beginning and the end only, on all batches; saved at the end only.
  std::int64_t eval_every = 0, eval_batches = 0, checkpoint_every = 0;
  /// @}
  DType dtype = DType::float32;  ///< of weights and arithmetic
  TrainerOptions trainer;        ///< what only the trainer reads; the run sets seed and stop
};
/// ConfigError for what does not fit; `steps` and `epochs` exclude each other.
TrainSettings read_train(io::Fields& fields);

/// The section "inspect".
struct InspectSettings {
  std::vector<std::string> parameters;  ///< patterns (io/pattern.h)
  std::int64_t every = 1;               ///< steps from one record to the next
};
/// ConfigError for what does not fit.
InspectSettings read_inspect(io::Fields& fields);

}  // namespace handgrad::train
