// Recording: what inspected parameters were after each step, which gradient made the step, and what the
// optimizer really applied. Written while training runs, readable at any time, also after the program was
// killed.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/core/array.h"
#include "handgrad/train/statistics.h"
#include "handgrad/train/trainer.h"

namespace handgrad::train {

/// The file in a run folder.
inline constexpr const char* kRecordingFile = "inspect.bin";

/// Appends a record after step 0 (the state before training), after every `every` steps, and after the last one.
///
/// The file: 8 bytes "hgrecord", the length of a JSON header (uint64), the header ({"version", "dtype",
/// "every", "parameters": [{"name", "shape"}]}), then records of one size: step (int64), learning rate
/// (float64), and for each parameter a flag (int64; 1: there was a gradient), the values, the gradient, and,
/// when `every` is not 1, the update of this step; with every step recorded the update is the difference of
/// two records. All little-endian.
///
/// When `every` is not 1, the statistics of every step go into a file beside it (statistics.h).
class Recorder final : public TrainerObserver {
 public:
  /// `names`: the parameters to record, of the trainer's; `last`: the step at which it will stop. Creates `path`
  /// when the trainer begins at step 0; else continues it: records of later steps are cut off, they will be made
  /// again. Error when it cannot be written.
  Recorder(std::filesystem::path path, const Trainer& trainer, const std::vector<std::string>& names,
           std::int64_t every, std::int64_t last);
  ~Recorder() override;

  void before_update(const Trainer& trainer, const StepReport& report) override;
  void after_update(const Trainer& trainer, const StepReport& report) override;

  /// Hands everything over to the file. Also done every 100 ms, and at the end. Error when the disk is full.
  void flush();

 private:
  void create();
  void continue_at(std::int64_t step);
  void open_statistics(std::int64_t step);
  void append(std::int64_t step, double lr);
  bool due(std::int64_t step) const { return step % every_ == 0 || step == last_; }

  std::filesystem::path path_;
  optim::Parameters parameters_;
  std::int64_t every_, last_;
  DType dtype_ = DType::float32;
  std::string header_;
  std::fstream file_;
  std::vector<char> buffer_;
  std::vector<Array> before_;  // values before the update, where it cannot be had from the record before
  std::optional<StatisticsWriter> statistics_;  // when `every` is not 1
  std::chrono::steady_clock::time_point flushed_;
};

/// One parameter after one step.
struct RecordedStep {
  std::int64_t step = 0;      ///< 0: before training
  double lr = 0;              ///< of this step's update
  std::vector<double> value;  ///< after the update, in row-major order
  std::vector<double>
      gradient;                ///< that made the step, before clipping; empty at step 0 or without a gradient
  std::vector<double> update;  ///< value minus the value before; empty at step 0
};

/// A parameter as the recording knows it.
struct RecordedParameter {
  std::string name;  ///< "trf_blocks.0.norm1.scale"
  Shape shape;       ///< of its values, gradients and updates
};

/// Reads a recording, also while the run is running. An incomplete record is ignored.
class Recording {
 public:
  /// Error when the file is missing or is not a recording.
  explicit Recording(const std::filesystem::path& path);

  /// In the order of the file.
  const std::vector<RecordedParameter>& parameters() const { return parameters_; }
  DType dtype() const { return dtype_; }         ///< of values and gradients in the file
  std::int64_t every() const { return every_; }  ///< steps from one record to the next

  std::int64_t step_count() const { return record_count_; }  ///< how many steps are there
  std::int64_t last_step() const { return last_step_; }      ///< of the last complete record; -1 without one
  /// The steps that are there from `first` to `last`, both included, rising: 0, every, 2 every, ..., and the last one.
  std::vector<std::int64_t> steps(std::int64_t first, std::int64_t last) const;
  /// Whether there is a complete record of it.
  bool has_step(std::int64_t step) const {
    return step >= 0 && step <= last_step_ && (step % every_ == 0 || step == last_step_);
  }

  /// Parameter number `i` after `step`, which must be there.
  RecordedStep read(std::size_t i, std::int64_t step) const;

  /// Calls `visit` for every step that is there, in turn, with these parameters in their order after it. Every record is
  /// read once: much faster than read() of each parameter at each step.
  void for_each_step(const std::vector<std::size_t>& parameters,
                     const std::function<void(const std::vector<RecordedStep>&)>& visit) const;

 private:
  /// Bytes of a record, from its beginning.
  struct Range {
    std::int64_t begin, end;
  };

  void read_header();
  Range range_of(std::size_t i) const;
  void read_bytes(std::int64_t record, Range range, char* to) const;
  void decode(const char* bytes, std::size_t i, RecordedStep& step) const;

  std::filesystem::path path_;
  mutable std::ifstream file_;
  DType dtype_ = DType::float32;
  std::int64_t every_ = 1, record_count_ = 0, last_step_ = -1;
  std::int64_t first_record_ = 0, record_bytes_ = 0;  // place and size in the file
  std::vector<RecordedParameter> parameters_;
  std::vector<std::int64_t> offsets_;  // of each parameter within a record
};

}  // namespace handgrad::train
