// The folder of one training run. Everything in it but timing.jsonl, meta.json and log.txt has the same bytes in equal runs.
//
//     config.json      the effective config: every key, defaults filled in
//     meta.json        version, compiler, CPU, kernels, threads, seed
//     metrics.jsonl    one object per step (metrics.h)
//     timing.jsonl     wall-clock values of each step, and where the run was resumed
//     recording.bin    recorded parameters (recording.h)
//     samples.jsonl    what the model wrote at some steps (samples.h)
//     log.txt
//     checkpoints/step-000100/
//     report.html      the page (report.h)
//     replaced/        the run that this one replaces, until this one has made a step
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace handgrad::train {

/// What a run is called: the last part of its folder's path, "toy" for runs/toy/.
std::string run_name(const std::filesystem::path& folder);

/// Error when an older handgrad wrote the run in `folder`, which then has files that are not read any more. Everything that
/// reads a run calls it first.
void reject_older_run(const std::filesystem::path& folder);

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

/// What was in force: version, compiler, CPU, kernels, threads, seed, and when the run began.
nlohmann::ordered_json run_meta(std::uint64_t seed);

}  // namespace handgrad::train
