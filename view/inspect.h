// inspect: scale, shift or any parameter, its gradients, updates and moments, after each step of a run that is finished,
// running or was killed.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/train/history.h"

namespace handgrad::view {

/// What is shown, and how.
struct InspectOptions {
  /// A table for people; CSV and JSON for programs.
  enum class Format { table, csv, json };

  std::vector<std::string> names = {};  ///< patterns (io/pattern.h); none: everything that was recorded
  train::Quantity of = train::Quantity::value;  ///< what is shown of them
  std::string steps = {};                       ///< "250", "1:5" (5 included), "last"; empty: the whole run
  bool values = false;                          ///< every number, not only their mean, std, min, max
  bool all = false;               ///< every feature in a ranking, not only the first and the last ones
  bool ascii = false;             ///< no characters beyond ASCII
  Format format = Format::table;  ///< of what is written
  std::size_t columns = 100;      ///< that a table may take; pictures and columns are left out for it
};

/// Writes what `run_or_file` holds: a run folder, a checkpoint's, or a safetensors file; the last two have one state and
/// no steps. Error with what is there instead when a name or a step is not.
void inspect(const std::filesystem::path& run_or_file, const InspectOptions& options, std::ostream& out);

/// The chosen parameters and steps of a run, which the formats below write out.
struct Selection {
  const train::History& history;        ///< must outlive it
  std::string title;                    ///< of the run, as it was typed
  std::string asked;                    ///< the names as they were typed; empty: everything
  std::vector<std::size_t> parameters;  ///< positions in history.entries()
  /// @{ Steps, both shown.
  std::int64_t first, last;
  /// @}
  bool only_last;              ///< each parameter at its own last step alone
  bool whole_run;              ///< whether no steps were asked for
  std::int64_t planned_steps;  ///< that the run was to make; 0 when not known
  std::string to_record;  ///< the key and value that would record the parameters that only checkpoints know

  std::vector<std::int64_t> steps(std::size_t parameter) const;  ///< those chosen of history.steps(), rising
  std::vector<std::int64_t> all_steps() const;                   ///< of any parameter, rising
  bool has(std::size_t parameter, std::int64_t step) const;      ///< whether it is one of steps(parameter)
};

/// What the options choose of it. Error with what is there instead when a name, a quantity or a step is not.
Selection select(const std::filesystem::path& run, const train::History& history,
                 const InspectOptions& options);
/// "100, 200, 300", or, of more than five, "1, 2, 3, 4 ... 300".
std::string steps_text(const std::vector<std::int64_t>& steps);

/// One CSV line for each step, name and index: step,name,index,value,gradient,update, or, of another quantity,
/// step,name,index,QUANTITY. Only of steps whose numbers are there. Numbers are the shortest text that reads back to the
/// same bits; a gradient or an update that does not exist is empty.
void write_csv(const Selection& selection, std::ostream& out);
/// An array of {"step", "name", "shape", "mean", "std", "min", "max", "farthest": {"index", "value"}}, where the run
/// recorded them "gradient_norm" and "update_norm", and with `values`, at steps whose numbers are there, "values",
/// "gradient", "update", flat and row-major. Of another quantity: "of", and "values" alone. NaN and infinities are
/// strings; what is not known is null.
void write_json(const Selection& selection, bool values, std::ostream& out);
/// @{ A tensor by itself: a CSV line for each number, name,index,value; or a JSON object as
/// above, whose step and farthest element are null, with `values` the numbers too.
void write_csv(const std::string& name, const Array& array, std::ostream& out);
void write_json(const std::string& name, const Array& array, bool values, std::ostream& out);
/// @}
/// Terminal columns that a complete table needs; a narrower one has fewer.
inline constexpr std::size_t kWideColumns = 88;
/// A table for each parameter with its chosen steps, which has fewer columns on a narrow terminal.
void write_steps(const Selection& selection, const InspectOptions& options, std::ostream& out);
/// For some steps: write_steps. For a whole run: the distance from the start of each parameter
/// as a small picture, or, for one parameter, its features, those that moved most first; the norm of gradients and
/// updates; a table of what checkpoints hold.
void write_table(const Selection& selection, const InspectOptions& options, std::ostream& out);

/// The JSON object in a file of a run's folder; an empty object when the file is missing or has no object.
nlohmann::ordered_json read_json(const std::filesystem::path& path);
/// How many steps the run's config plans; 0 when it does not say.
std::int64_t planned_steps(const nlohmann::ordered_json& config);

/// How often the pushes of the gradients agree: |sum| / sum of absolute values; 1: always the same way, 0:
/// they cancel.
double agreement(double sum, double sum_of_absolute_values);

/// How one parameter moved during a run, built from its recorded steps.
struct Trajectory {
  /// `first` and `final`: its values at the first and the last step.
  Trajectory(std::vector<double> first, std::vector<double> final);

  /// `gradient` may be empty.
  void add(std::int64_t step, const std::vector<double>& value, const std::vector<double>& gradient);

  /// Elements by their distance from the start, largest first. NaN counts as the largest.
  std::vector<std::size_t> ranking() const;
  /// view::agreement of this element.
  double agreement(std::size_t i) const { return view::agreement(sum[i], absolute_sum[i]); }

  /// @{ For each element: its first and last value; the sum of its gradients and of their absolute values, and how many
  /// were negative; the first step at which it had moved half of its final distance, or -1.
  std::vector<double> start, last;
  std::vector<double> sum, absolute_sum, negative;
  std::vector<std::int64_t> half_way;
  /// @}
  std::int64_t gradients = 0;  ///< how many were added
};

/// The value that all elements start with; none when they differ.
std::optional<double> common_start(const std::vector<double>& start);

/// `values` (none negative) as a line of `columns` marks, each as high as the mean of its share, `top` being
/// full.
std::string sparkline(const std::vector<double>& values, double top, std::size_t columns, bool ascii);

}  // namespace handgrad::view
