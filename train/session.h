// Session: a run on its way, with its folder: steps, evaluations, metrics, recordings, samples, checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "handgrad/train/metrics.h"
#include "handgrad/train/recording_writer.h"
#include "handgrad/train/run.h"
#include "handgrad/train/run_folder.h"
#include "handgrad/train/samples.h"

namespace handgrad::train {

/// How a session ended.
enum class Ending { finished, stopped };

/// A run and its folder. It is the first observer of its trainer, followed by the writers of the folder's files; observers
/// added later see a step after these.
class Session final : private StepObserver {
 public:
  /// Writes config.json and meta.json; for a resumed run only after its first step, so that a run that cannot be resumed
  /// stays as it was. `run` must outlive it. A run whose trainer is beyond step 0 is resumed: later steps in the folder
  /// are made again and replaced.
  Session(Run& run, RunFolder folder);
  ~Session() override;

  /// Trains until the last step or until a stop is requested; then saves. Throws what the trainer throws: when a loss is
  /// not finite, the weights before that step are saved first.
  Ending train();

  const RunFolder& folder() const { return folder_; }  ///< where everything is written

 private:
  void after_step(const Trainer& trainer, const StepReport& report) override;
  std::optional<std::int64_t> validation_batches(std::int64_t step) const;
  std::optional<double> evaluate();
  void describe() const;
  nlohmann::ordered_json origins() const;
  void keep();
  void save();

  Run& run_;
  RunFolder folder_;
  MetricsWriter metrics_;
  SamplesWriter samples_;
  std::unique_ptr<RecordingWriter> recorder_;
  std::int64_t saved_step_ = -1;
  std::filesystem::path saved_;  // the checkpoint of that step
  bool kept_ = false;
};

}  // namespace handgrad::train
