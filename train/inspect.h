// inspect: scale, shift or any recorded parameter after each step of a run that is finished, running or was
// killed.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "handgrad/train/recording.h"

namespace handgrad::train {

/// What is shown, and how.
struct InspectOptions {
  /// A table for people; CSV and JSON for programs.
  enum class Format { table, csv, json };

  std::vector<std::string> names = {};  ///< patterns (nn/pattern.h); none: everything that was recorded
  std::string steps = {};               ///< "250", "1:5" (5 included), "last"; empty: the whole run
  bool values = false;                  ///< every number, not only their mean, std, min, max
  bool all = false;                     ///< every feature in a ranking, not only the first and the last ones
  bool ascii = false;                   ///< no characters beyond ASCII
  Format format = Format::table;        ///< of what is written
  std::size_t columns = 100;            ///< that a table may take; pictures and columns are left out for it
};

/// Writes what `run_or_file` holds: a run folder, or a safetensors file, which has one state and no steps.
/// Error with what is there instead when a name or a step is not.
void inspect(const std::filesystem::path& run_or_file, const InspectOptions& options, std::ostream& out);

/// Mean, spread and extremes of one state of a parameter. std divides by n, like the norm.
struct Statistics {
  /// @{ Over all elements.
  double mean = 0, std = 0, min = 0, max = 0;
  /// @}
  std::size_t farthest = 0;  ///< index of the element farthest from its start; the first of equals
};
/// `start` is what the elements are measured from, of the same size, or empty: 0.
Statistics statistics(const std::vector<double>& value, const std::vector<double>& start);

/// The chosen parameters and steps of a recording, which the formats below write out.
struct Selection {
  const Recording& recording;           ///< must outlive it
  std::string title;                    ///< of the run, as it was typed
  std::string asked;                    ///< the names as they were typed; empty: everything
  std::vector<std::size_t> parameters;  ///< positions in recording.parameters()
  /// @{ Steps, both shown.
  std::int64_t first, last;
  /// @}
  std::int64_t planned_steps;  ///< that the run was to make; 0 when not known
  bool whole_run;              ///< whether no steps were asked for
};

/// One CSV line for each step, name and index: step,name,index,value,gradient,update. Numbers are the
/// shortest text that reads back to the same bits; a gradient or an update that does not exist is empty.
void write_csv(const Selection& selection, std::ostream& out);
/// An array of {"step", "name", "shape", "mean", "std", "min", "max", "farthest": {"index", "value"}}, with
/// `values` also "values", "gradient", "update", flat and row-major. NaN and infinities are strings.
void write_json(const Selection& selection, bool values, std::ostream& out);
/// For some steps: a table for each parameter. For a whole run: the distance from the start of each parameter
/// as a small picture, or, for one parameter, its features, those that moved most first.
void write_table(const Selection& selection, const InspectOptions& options, std::ostream& out);

/// How often the pushes of the gradients agree: |sum| / sum of absolute values; 1: always the same way, 0:
/// they cancel.
double agreement(double sum, double sum_of_absolute_values);

/// `values` (none negative) as a line of `columns` marks, each as high as the mean of its share, `top` being
/// full.
std::string sparkline(const std::vector<double>& values, double top, std::size_t columns, bool ascii);

}  // namespace handgrad::train
