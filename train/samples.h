// Samples: text that a model generates at some steps of its training, kept in the run's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/train/run.h"

namespace handgrad::train {

/// How many tokens a sample has.
inline constexpr std::int64_t kSampleTokens = 64;

/// What the model writes on one line, at temperature 0.7, drawn with the run's seed; empty when its tokens are not text, or
/// when its weights are not finite.
std::string sample_text(const Run& run, std::int64_t tokens = kSampleTokens);

/// 0, 1, 10, 50, 100, 200, 500, 1000, 2000, 5000, ...
bool is_sample_step(std::int64_t step);

/// Writes the file of samples. It reads the model and changes nothing of the run.
class SamplesWriter final : public StepObserver {
 public:
  /// Continues a file that is there: samples of later steps than the trainer's are replaced.
  SamplesWriter(const Run& run, const std::filesystem::path& folder);

  /// Step 0 of a new run; nothing for a resumed one.
  void begin(const Trainer& trainer, std::optional<double> validation_loss) override;
  /// A line after a sample step, and after the run's last.
  void after_step(const Trainer& trainer, const StepReport& report) override;

 private:
  void write(std::int64_t step, std::optional<double> validation_loss);

  const Run& run_;
  std::filesystem::path path_;
  std::ofstream file_;
};

/// The complete lines of that file, as an array.
nlohmann::ordered_json read_samples(const std::filesystem::path& folder);

}  // namespace handgrad::train
