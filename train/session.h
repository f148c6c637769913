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

/// Observes a session: what a terminal shows. The library itself prints nothing.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  /// Before the first step, with the validation loss, if there is any.
  virtual void started(const Run& /*run*/, std::optional<double> /*validation_loss*/) {}
  /// After each update; with the validation loss when it was measured.
  virtual void stepped(const Run& /*run*/, const StepReport& /*report*/,
                       std::optional<double> /*validation_loss*/) {}
  virtual void saved(const std::filesystem::path& /*checkpoint*/) {}  ///< a checkpoint is complete
};

/// How a session ended.
enum class Ending { finished, stopped };

/// A run and its folder.
class Session {
 public:
  /// Writes config.json and meta.json; for a resumed run only after its first step, so that a run that cannot be resumed
  /// stays as it was. `run` and `listener` must outlive it. A run whose trainer is beyond step 0 is resumed: later steps
  /// in the folder are made again and replaced.
  Session(Run& run, RunFolder folder, SessionListener& listener);
  ~Session();

  /// Trains until the last step or until a stop is requested; then saves. Throws what the trainer throws: when a loss is
  /// not finite, the weights before that step are saved first.
  Ending train();

  const RunFolder& folder() const { return folder_; }  ///< where everything is written

 private:
  bool evaluation_due(std::int64_t step) const;
  std::optional<double> evaluate(std::int64_t step);
  void describe() const;
  nlohmann::ordered_json origins() const;
  void keep();
  void save();

  Run& run_;
  RunFolder folder_;
  SessionListener& listener_;
  MetricsWriter metrics_;
  SamplesWriter samples_;
  std::unique_ptr<RecordingWriter> recorder_;
  std::int64_t saved_step_ = -1;
  std::filesystem::path saved_;  // the checkpoint of that step
  bool kept_ = false;
};

}  // namespace handgrad::train
