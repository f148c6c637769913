// The folder of one training run. Everything in it but timing.jsonl, meta.json and log.txt has the same bytes in equal runs.
//
//     config.json      the effective config: every key, defaults filled in
//     meta.json        version, compiler, CPU, kernels, threads, seed
//     metrics.jsonl    one object per step
//     timing.jsonl     wall-clock values of each step, and where the run was resumed
//     recording.bin    recorded parameters (recording.h)
//     texts.jsonl      what the model wrote at some steps (samples.h)
//     log.txt
//     checkpoints/step-000100/
//     report.html      the page (report.h)
//     replaced/        the run that this one replaces, until this one has made a step
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/train/trainer.h"

namespace handgrad::train {

/// What a run is called: the last part of its folder's path, "toy" for runs/toy/.
std::string run_name(const std::filesystem::path& folder);

/// Makes the folder of a run or finds it, and knows where its files are. A new run that fails before its first step
/// leaves nothing of itself, and what it was to replace.
class RunFolder {
 public:
  /// What to do with a folder that holds a run already.
  enum class Existing { refuse, overwrite };

  /// Keeps other processes from training in the same folder while it lives.
  class Lock {
   public:
    Lock() = default;
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    /// Error when another process has it. Does nothing while the folder does not exist, or when it is held already.
    void take(const std::filesystem::path& path);

   private:
    int folder_ = -1;
  };

  /// Makes the folder. Error when it holds a run and `existing` does not allow to overwrite it, when it holds other
  /// files (handgrad deletes only its files), or when it cannot be made. Until keep() is called, the destructor of the
  /// last copy restores what was there before.
  static RunFolder create(const std::filesystem::path& path, Existing existing);
  /// Recovers after a crash: if the new run made no step, restores the run it was replacing. The caller holds the lock,
  /// since a run that has just begun looks the same.
  static void recover(const std::filesystem::path& path);
  /// A folder that holds a run, to continue it or to look at it. Error when there is none, said by `verb`.
  static RunFolder open(const std::filesystem::path& path, const char* verb = "train");
  /// Whether a process holds the lock of this folder: its run is running.
  static bool in_use(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }                  ///< as it was given
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }  ///< where checkpoints are
  std::filesystem::path recording() const;                                     ///< where recording.bin is

  /// @{ Error when it cannot be written.
  void write_config(const nlohmann::ordered_json& effective) const;
  void write_meta(const nlohmann::ordered_json& meta) const;
  /// @}
  /// Whether it was made by create(), and keep() has not been called.
  bool is_new() const { return before_ != nullptr; }
  /// The run has made a step, or saved its state: it is kept from now on, and the run that it replaced is deleted.
  void keep();

 private:
  /// What was there before a new run, as long as it may have to come back.
  class Before;

  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  std::shared_ptr<Before> before_;
};

/// Writes metrics.jsonl and timing.jsonl: `{"step": 1, "loss": 3.5, "lr": 0.0009, "grad_norm": 0.8}`, with `val_loss`
/// where there was an evaluation, and `{"step": 1, "seconds": 0.02, "tokens": 256}`, a line each step. Seconds count from
/// where the writer was made; the first line of one that continues a file has `"resumed": true` too. Handed to the system
/// every 100 ms.
class MetricsWriter {
 public:
  /// Continues files that are there after line `steps_kept`: steps that are made again are written once.
  MetricsWriter(const RunFolder& run, std::int64_t steps_kept);
  ~MetricsWriter();

  /// A line in both files; `validation_loss` where there was an evaluation.
  void add(const StepReport& report, std::optional<double> validation_loss);
  /// The step that could not be made because its loss or its gradient was not finite: null, with "non_finite".
  void add_non_finite(std::int64_t step, double lr);
  /// Hands what waits to the system.
  void flush();

 private:
  void put_number(const char* key, double value);
  void end_line();

  std::filesystem::path path_;
  std::ofstream metrics_, timing_;
  std::string line_, metrics_buffer_, timing_buffer_;
  std::chrono::steady_clock::time_point start_, flushed_;
  bool resumed_;  // until the first line
};

/// Opens a file of lines to add to it, cut before the first of its lines that `keep` does not want, or that is not
/// complete. What is kept is never written again, so no interruption can lose it. Error when it cannot be written.
std::ofstream continue_lines(const std::filesystem::path& path,
                             const std::function<bool(const std::string& line)>& keep);

/// What was in force: version, compiler, CPU, kernels, threads, seed, and when the run began.
nlohmann::ordered_json run_meta(std::uint64_t seed);

}  // namespace handgrad::train
