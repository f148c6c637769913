// Metrics: the loss of every step, its learning rate, gradient norm and time, in the run's folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/train/trainer.h"

namespace handgrad::train {

/// @{ The files in a run folder.
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kTimingFile = "timing.jsonl";
/// @}

/// Writes metrics.jsonl and timing.jsonl: `{"step": 1, "loss": 3.5, "lr": 0.0009, "grad_norm": 0.8}`, with `val_loss`
/// where there was an evaluation, and `{"step": 1, "seconds": 0.02, "tokens": 256}`, a line each step. Seconds count from
/// where the writer was made; the first line of one that continues a file has `"resumed": true` too. Handed to the system
/// every 100 ms.
class MetricsWriter final : public StepObserver {
 public:
  /// Continues files that are there after `step`, replacing the lines of later steps.
  MetricsWriter(const std::filesystem::path& folder, std::int64_t step);
  ~MetricsWriter() override;

  /// A line in both files.
  void after_step(const Trainer& trainer, const StepReport& report) override;
  void saving() override { flush(); }
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

/// One line of metrics.jsonl. NaN: the line does not have the number, or it was not finite.
struct StepMetrics {
  std::int64_t step;  ///< from 1
  /// @{ As in StepReport; clip_factor is 1 where the line has none.
  double loss, lr, grad_norm, validation_loss, clip_factor;
  /// @}
  bool non_finite;  ///< whether a loss or a gradient was not finite
};

/// Calls `visit` for every complete line of the run in `folder`.
void for_each_metrics(const std::filesystem::path& folder,
                      const std::function<void(const StepMetrics&)>& visit);

/// The steps after which the run in `folder` was interrupted and resumed, as timing.jsonl says.
std::vector<std::int64_t> resumed_after(const std::filesystem::path& folder);

}  // namespace handgrad::train
