// RecordingWriter: writes the recording of a run while it trains.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "handgrad/core/array.h"
#include "handgrad/train/recording_format.h"
#include "handgrad/train/statistics.h"
#include "handgrad/train/trainer.h"

namespace handgrad::train {

/// Appends the records of a run. The buffer goes to the file every 100 ms, when it is half full, and with flush().
class RecordingWriter final : public StepObserver {
 public:
  /// `names`: the parameters to record, of the trainer's; `last`: the step at which it will stop. Creates `path`
  /// when the trainer begins at step 0; else continues it, replacing records of later steps. Error when it cannot be
  /// written, or when what is there does not go as far as the trainer.
  RecordingWriter(std::filesystem::path path, const Trainer& trainer, const std::vector<std::string>& names,
                  std::int64_t every, std::int64_t last);
  ~RecordingWriter() override;

  void before_update(const Trainer& trainer, const StepReport& report) override;
  void after_step(const Trainer& trainer, const StepReport& report) override;

  void saving() override { flush(); }

  /// Hands everything over to the file. Error when the disk is full.
  void flush();

 private:
  void create();
  void continue_after(std::int64_t step);
  void open(std::ios::openmode mode);
  void append(std::int64_t step, double lr);
  void take_statistics(std::int64_t step);
  std::uint64_t append_values(std::size_t i, std::int64_t step);

  std::filesystem::path path_;
  RecordingLayout layout_;
  optim::Parameters parameters_;
  std::int64_t last_;
  std::vector<Array> start_, before_;  // values before training, and before the update
  std::int64_t numel_ = 0;             // of all parameters
  std::vector<StepStatistics> statistics_;
  std::fstream file_;
  std::vector<char> buffer_;
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace handgrad::train
