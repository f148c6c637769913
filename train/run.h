// Run: everything that a config describes, built and connected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/data/data_source.h"
#include "handgrad/models/model.h"
#include "handgrad/optim/optimizer.h"
#include "handgrad/optim/schedule.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/config.h"
#include "handgrad/train/trainer.h"

namespace handgrad::train {

/// What a run is told beside its config.
struct RunContext {
  const std::atomic<bool>* stop = nullptr;  ///< see TrainerOptions
  /// The tokenizer of a run that is resumed or inspected: ids keep their meaning if the text changes. nullptr: a new
  /// tokenizer.
  std::shared_ptr<const data::Tokenizer> tokenizer = {};
  bool weights_follow = false;  ///< the model gets its weights from a file: its first ones are not drawn
};

/// The parts of a run in the order in which they depend on each other.
class Run {
 public:
  /// Checks the whole config first, so that a mistake anywhere costs no time and no memory (nn::ConfigError); then reads
  /// the data and builds the model with its first weights.
  explicit Run(const ConfigDocument& config, const RunContext& context = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  std::uint64_t seed() const { return seed_; }  ///< of first weights, data and dropout
  /// Updates of the whole run, as the schedule sees it.
  std::int64_t steps() const { return steps_; }
  /// The step after which this call to the program stops: steps(), or train.stop_after.
  std::int64_t last_step() const;
  /// @{ The sections "train" and "inspect".
  const TrainSettings& settings() const { return settings_; }
  const InspectSettings& inspect() const { return inspect_; }
  /// @}
  /// Names of the parameters that the inspect section asks for.
  const std::vector<std::string>& inspected() const { return inspected_; }
  /// Names of the parameters that train.freeze means.
  const std::vector<std::string>& frozen() const { return frozen_; }

  const data::DataSource& source() const { return *source_; }  ///< the section "data", with its tokenizer
  const data::OpenedData& data() const { return data_; }       ///< its batches
  const data::BatchPlan& plan() const { return plan_; }  ///< rows, tokens and micro-batches of an update
  models::Model& model() const { return *model_; }  ///< with its first weights, or those it was given since
  Trainer& trainer() const { return *trainer_; }    ///< connects all of them

  /// The config with every default filled in, and paths as they are from anywhere.
  const nlohmann::ordered_json& effective() const { return *effective_; }
  /// Where each value of the config came from, by key: {"train.steps", "command line"}.
  const std::map<std::string, std::string>& origins() const { return origins_; }
  /// The config, the tokenizer and the data's fingerprint: what goes with the weights into a checkpoint.
  CheckpointOrigin origin() const;
  /// Things to tell the user once.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend void read_config(io::Fields& fields);
  Run();

  /// Reads every section, in the one order in which they can be read. `folder`: where relative paths start.
  void read(io::Fields root, const std::filesystem::path& folder, const RunContext& context);
  void build_trainer(const std::atomic<bool>* stop);

  std::uint64_t seed_ = 0;
  std::int64_t steps_ = 0;
  TrainSettings settings_;
  InspectSettings inspect_;
  data::BatchPlan plan_;
  std::unique_ptr<data::DataSource> source_;
  std::unique_ptr<models::Model> model_;
  data::OpenedData data_;
  std::string fingerprint_;
  std::vector<std::string> frozen_, inspected_, notes_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Schedule> schedule_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<nlohmann::ordered_json> effective_;
  std::map<std::string, std::string> origins_;
};

/// Reads every section and builds nothing. With Fields::describing() this notes every key that a config may have; with
/// ConfigDocument::fields(nn::Purpose::check) it checks a config, and notes the values in force and their origins.
void read_config(io::Fields& fields);

}  // namespace handgrad::train
