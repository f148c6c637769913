// Recording: inspected parameters after each step, the gradient that made the step, and the update that the optimizer
// applied. Readable at any time, also while training runs and after the program was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "handgrad/train/recording_format.h"
#include "handgrad/train/statistics.h"

namespace handgrad::train {

/// The file in a run folder.
inline constexpr const char* kRecordingFile = "recording.bin";

/// One parameter after one step.
struct RecordedStep {
  std::int64_t step = 0;      ///< 0: before training
  double lr = 0;              ///< of this step's update
  std::vector<double> value;  ///< after the update, in row-major order
  std::vector<double>
      gradient;                ///< that made the step, before clipping; empty at step 0 or without a gradient
  std::vector<double> update;  ///< value minus the value before; empty at step 0
};

/// Reads a recording, also while the run is running. A record cut off at the end of the file is ignored. What is read is
/// compared with its checksum; Error names the file and the step when it differs.
class Recording {
 public:
  /// Error when the file is missing or is not a recording.
  explicit Recording(const std::filesystem::path& path);

  const RecordingLayout& layout() const { return layout_; }  ///< of the file
  /// In the order of the file.
  const std::vector<RecordedParameter>& parameters() const { return layout_.parameters; }
  DType dtype() const { return layout_.dtype; }         ///< of values and gradients in the file
  std::int64_t every() const { return layout_.every; }  ///< steps from one record with values to the next

  std::int64_t last_step() const { return last_step_; }  ///< of the last complete record; -1 without one
  /// The steps with values from `first` to `last`, both included, rising: 0, every, 2 every, ..., and the last one.
  std::vector<std::int64_t> steps(std::int64_t first, std::int64_t last) const;
  /// All of them.
  std::vector<std::int64_t> steps() const { return steps(0, last_step_); }
  /// Whether its values are there, not only their statistics.
  bool has_values(std::int64_t step) const {
    return step >= 0 && step <= last_step_ &&
           (step % layout_.every == 0 || (step == last_step_ && last_has_values_));
  }

  double lr(std::int64_t step) const;  ///< of that step's update
  /// @{ Parameter number `i` after `step`: in a few numbers, for every step up to the last; and its values, which must
  /// be there.
  StepStatistics statistics(std::size_t i, std::int64_t step) const { return entry_of(i, step).statistics; }
  RecordedStep read(std::size_t i, std::int64_t step) const;
  /// @}

  /// Calls `visit` for every step with values, in turn, with these parameters in their order after it. Every record is
  /// read once: faster than read() of each parameter at each step.
  void for_each_step(const std::vector<std::size_t>& parameters,
                     const std::function<void(const std::vector<RecordedStep>&)>& visit) const;

  std::int64_t place_of(std::int64_t step) const;  ///< where its record begins in the file
  /// Its record up to the values, as it is in the file.
  const std::vector<char>& head_of(std::int64_t step) const;

 private:
  void read_start();
  void find_last(std::int64_t size);
  void read_bytes(std::int64_t place, void* to, std::int64_t bytes) const;
  RecordEntry entry_of(std::size_t i, std::int64_t step) const;
  void read_values(std::size_t i, RecordedStep& step) const;
  [[noreturn]] void throw_damaged(std::int64_t step) const;

  std::filesystem::path path_;
  mutable std::ifstream file_;
  RecordingLayout layout_;
  std::int64_t first_record_ = 0;  // its place in the file
  std::int64_t head_bytes_ = 0, value_bytes_ = 0;
  std::vector<std::int64_t> offsets_;  // of each parameter within the values of a record
  std::int64_t last_step_ = -1;
  bool last_has_values_ = false;
  mutable std::vector<char> head_;  // of the record that was read last
  mutable std::int64_t head_step_ = -1;
};

}  // namespace handgrad::train
