// Statistics: what a parameter was like after a step, in a few numbers. Where a run records values only now and then,
// these are kept for every step, in another file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "handgrad/core/array.h"
#include "handgrad/optim/optimizer.h"

namespace handgrad::train {

/// Mean, spread and extremes of one state of a parameter. std divides by n, like the norm.
struct Statistics {
  /// @{ Over all elements.
  double mean = 0, std = 0, min = 0, max = 0;
  /// @}
  std::size_t farthest = 0;   ///< index of the element farthest from its start; the first of equals
  double farthest_value = 0;  ///< that element
};
/// `start` is what the elements are measured from, of the same size, or empty: 0.
Statistics statistics(const std::vector<double>& value, const std::vector<double>& start);
/// Root of the sum of squares.
double norm_of(const std::vector<double>& numbers);

/// The file in a run folder.
inline constexpr const char* kStatisticsFile = "statistics.bin";

/// What is kept of one parameter after one step.
struct StepStatistics {
  Statistics value;          ///< after the update, measured from the state before training
  double gradient_norm = 0;  ///< of the gradient that made the step, before clipping; -1: there was none
  double update_norm = 0;    ///< of value minus the value before; -1 at step 0
};

/// Appends a record of every step.
///
/// The file: 8 bytes "hgstatis", the length of a JSON header (uint64), the header ({"version", "parameters": [NAME]}),
/// then records of one size: step (int64), learning rate (float64), and for each parameter mean, std, min, max
/// (float64), farthest (int64), its value, |gradient| and |update| (float64). All little-endian.
class StatisticsWriter {
 public:
  /// `start`: the parameters before training. With `step` 0 it creates `path`, else it continues it after that step:
  /// later records are cut off. A file that does not reach it, or is of other parameters, begins again there. Error when
  /// it cannot be written.
  StatisticsWriter(std::filesystem::path path, optim::Parameters parameters, std::vector<Array> start,
                   std::int64_t step);

  /// A record of the parameters as they are; `before`: as they were before the update, empty at step 0. The same bits
  /// for any number of threads, and no allocation.
  void append(std::int64_t step, double lr, const std::vector<Array>& before);
  /// Hands everything over to the file; also done when much has gathered. Error when the disk is full.
  void flush();

 private:
  void open(std::ios::openmode mode);
  void begin(std::string header);

  std::filesystem::path path_;
  optim::Parameters parameters_;
  std::vector<Array> start_;
  std::int64_t numel_ = 0;  // of all parameters
  std::vector<StepStatistics> record_;
  std::vector<char> buffer_;
  std::fstream file_;
};

/// Reads the file, also while the run is running. An incomplete record is ignored.
class StatisticsFile {
 public:
  /// Error when the file is missing or is none of these.
  explicit StatisticsFile(const std::filesystem::path& path);

  const std::vector<std::string>& parameters() const { return parameters_; }  ///< in the order of the file
  /// @{ Of the first and the last complete record; 0 and -1 without one.
  std::int64_t first_step() const { return first_step_; }
  std::int64_t last_step() const { return last_step_; }
  /// @}
  /// Whether there is a complete record of it.
  bool has_step(std::int64_t step) const { return step >= first_step_ && step <= last_step_; }

  /// The statistics of parameter number `i` after `step`, which must be recorded.
  StepStatistics read(std::size_t i, std::int64_t step) const;
  double lr(std::int64_t step) const;            ///< of that step's update
  std::int64_t end_of(std::int64_t step) const;  ///< where its record ends in the file, in bytes

 private:
  void read_header();
  void read_at(std::int64_t step, std::int64_t offset, void* data, std::size_t bytes) const;

  std::filesystem::path path_;
  mutable std::ifstream file_;
  std::vector<std::string> parameters_;
  std::int64_t first_step_ = 0, last_step_ = -1;
  std::int64_t first_record_ = 0, record_bytes_ = 0;  // place and size in the file
};

}  // namespace handgrad::train
