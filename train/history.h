// History: all that a run's folder kept of its parameters: the recording, and the checkpoints, which hold the parameters
// that were not recorded and the optimizer's moments.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/core/shape.h"
#include "handgrad/io/safetensors.h"
#include "handgrad/train/recording.h"
#include "handgrad/train/statistics.h"

namespace handgrad::train {

/// Which numbers of a parameter. first_moment and second_moment are the states of optim::Moment, such as Adam's exp_avg
/// and exp_avg_sq.
enum class Quantity { value, gradient, update, first_moment, second_moment };

/// Their words, in that order: "value", "gradient", "update", "first_moment", "second_moment".
const std::vector<std::string>& quantity_names();
/// "gradient"
const std::string& name_of(Quantity quantity);
/// What registered optimizers call a moment in their state: "exp_avg", "momentum".
std::vector<std::string> state_names(Quantity of);

/// The numbers of one parameter at one step.
struct HistoryStep {
  DType dtype = DType::float32;  ///< in which they read back to the same bits
  std::vector<double> numbers;   ///< of the quantity, in row-major order
  std::vector<double> gradient;  ///< beside a recorded value; else empty
  std::vector<double> update;    ///< beside a recorded value; else empty
};

/// The same in a few numbers.
struct HistorySummary {
  std::optional<double> lr;  ///< of that step's update; none when only a checkpoint tells
  /// The quantity's statistics. Values are measured from the state before training where that is recorded, gradients and
  /// updates from 0. None where only the norm was kept.
  std::optional<Statistics> statistics;
  double distance = 0;           ///< of the farthest element
  DType dtype = DType::float32;  ///< of min, max and the farthest element
  /// @{ Of the gradient that made the step, and of the update; none where they are not known.
  std::optional<double> gradient_norm, update_norm;
  /// @}
};

/// Reads it, also while the run is running.
class History {
 public:
  /// A parameter of which something is known.
  struct Item {
    std::string name;                     ///< "trf_blocks.0.norm1.scale"
    Shape shape;                          ///< of its values, gradients, updates and moments
    std::optional<std::size_t> recorded;  ///< its position in the recording
    std::vector<std::int64_t> saved;  ///< steps of the checkpoints that hold the quantity; for History::steps
  };

  /// Error when a file is damaged. Checkpoints are only looked at for a moment, for a run that recorded nothing, or
  /// when `unrecorded` parameters are asked for too.
  History(const std::filesystem::path& run, Quantity of, bool unrecorded);

  Quantity of() const { return of_; }  ///< what is looked at
  /// Recorded parameters in their order, then those that only the checkpoints hold.
  const std::vector<Item>& entries() const { return entries_; }
  /// Steps at which something is known of entry `i`, rising; there may be none: a parameter that was not recorded has no
  /// gradient.
  const std::vector<std::int64_t>& steps(std::size_t i) const {
    return from_checkpoints(i) ? entries_[i].saved : recorded_steps_;
  }
  /// nullptr when the run recorded nothing.
  const Recording* recording() const { return recording_.get(); }
  /// Steps of the complete checkpoints, rising, when they were looked at.
  const std::vector<std::int64_t>& checkpoint_steps() const { return checkpoint_steps_; }
  std::int64_t last_step() const;  ///< of all that is known; -1: nothing
  /// The optimizer's type in the last checkpoint, and the arrays that it keeps for a parameter ("exp_avg").
  std::string optimizer_type() const;
  std::vector<std::string> moments() const;  ///< see optimizer_type

  /// Whether the numbers of entry `i` are there, not only their statistics.
  bool has_numbers(std::size_t i, std::int64_t step) const;
  /// Where the quantity of entry `i` comes from.
  bool from_checkpoints(std::size_t i) const {
    return of_ >= Quantity::first_moment || !entries_[i].recorded;
  }
  /// @{ Of entry `i` after one of its steps; read() needs numbers there.
  HistoryStep read(std::size_t i, std::int64_t step) const;
  HistorySummary summary(std::size_t i, std::int64_t step) const;
  /// @}

 private:
  void add_recorded();
  void add_unrecorded();
  void add_moments();
  const io::SafetensorsReader& reader(std::int64_t step, const char* file) const;
  std::string moment_of(const io::SafetensorsReader& file, const std::string& parameter) const;
  const std::vector<double>& start_of(std::size_t i) const;

  std::filesystem::path run_;
  Quantity of_;
  std::unique_ptr<Recording> recording_;
  std::vector<std::int64_t> checkpoint_steps_;
  std::vector<Item> entries_;
  std::vector<std::int64_t> recorded_steps_;                   // with values, or statistics alone
  mutable std::unique_ptr<io::SafetensorsReader> reader_;      // the last one that was asked for
  mutable std::map<std::size_t, std::vector<double>> starts_;  // of recorded values
};

}  // namespace handgrad::train
