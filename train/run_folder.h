// The folder of one training run. Equal runs have equal bytes in all of its files except timing.jsonl, meta.json and
// log.txt.
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

/// A run's name: the last part of its folder's path, "toy" for runs/toy/.
std::string run_name(const std::filesystem::path& folder);

/// Error when an older handgrad wrote the run in `folder`, in files that this one does not read. Call it before reading
/// a run.
void reject_older_run(const std::filesystem::path& folder);

/// Creates or finds the folder of a run. A new run that fails before its first step is deleted, and
/// the run that it was replacing is restored.
class RunFolder {
 public:
  /// What to do with a folder that already holds a run.
  enum class Existing { reject, overwrite };

  /// Keeps other processes from training in the same folder while it lives.
  class Lock {
   public:
    Lock() = default;
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    /// Error when another process holds the lock. Does nothing if this object holds it, or if the folder does not exist.
    void take(const std::filesystem::path& path);

   private:
    int folder_ = -1;
  };

  /// Creates the folder. Error when it holds a run and `existing` is reject, when it holds other files (handgrad deletes
  /// only its own), or when it cannot be created. Until keep() is called, the destructor of the last copy restores the
  /// earlier contents.
  static RunFolder create(const std::filesystem::path& path, Existing existing);
  /// Recovers after a crash: if the new run made no step, restores the run it was replacing. The caller holds the lock,
  /// since a run that has just begun looks the same.
  static void recover(const std::filesystem::path& path);
  /// Opens the folder of a run, to resume or to read it. Error, in the name of `verb`, when it holds none.
  static RunFolder open(const std::filesystem::path& path, const char* verb = "train");
  /// Whether a process holds the lock of this folder, so its run is running.
  static bool in_use(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }                  ///< as it was given
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }  ///< where checkpoints are
  std::filesystem::path recording() const;                                     ///< where recording.bin is

  /// @{ Error when it cannot be written.
  void write_config(const nlohmann::ordered_json& effective) const;
  void write_meta(const nlohmann::ordered_json& meta) const;
  /// @}
  /// Whether create() made it and keep() has not been called.
  bool is_new() const { return backup_ != nullptr; }
  /// Keeps this run and deletes the run that it replaced. Called after the first step or the first saved state.
  void keep();

 private:
  /// The folder's earlier contents, while they may have to be restored.
  class Backup;

  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  std::shared_ptr<Backup> backup_;
};

/// The run's conditions: version, compiler, CPU, kernels, threads, seed, and its start time.
nlohmann::ordered_json run_meta(std::uint64_t seed);

}  // namespace handgrad::train
