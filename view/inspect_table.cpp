// inspect for people: what moved, how far, when and why.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <ostream>

#include "handgrad/view/inspect.h"
#include "handgrad/view/next.h"
#include "handgrad/view/table.h"
#include "handgrad/view/text.h"

namespace handgrad::view {
namespace {

constexpr std::size_t kSparkColumns = 30;  // at most

/// Columns of the small pictures beside `others` columns of text.
std::size_t spark_columns(const InspectOptions& options, std::size_t others) {
  const std::size_t room = options.columns > others ? options.columns - others : 0;
  return std::clamp<std::size_t>(room, 3, kSparkColumns);
}

/// The distances of a parameter's elements, for their pictures: by element, then step.
struct Picture {
  Trajectory path;
  std::vector<std::vector<double>> distances;
};

Picture picture_of(const Selection& s, std::size_t parameter, const std::vector<std::int64_t>& steps) {
  const auto numbers = [&](std::int64_t step) { return s.history.read(parameter, step).numbers; };
  Picture picture{{numbers(steps.front()), numbers(steps.back())}, {}};
  const std::vector<double>& start = picture.path.start;
  picture.distances.resize(start.size());
  for (const std::int64_t step : steps) {
    const train::HistoryStep record = s.history.read(parameter, step);
    picture.path.add(step, record.numbers, record.gradient);
    for (std::size_t i = 0; i < start.size(); ++i)
      picture.distances[i].push_back(std::abs(record.numbers[i] - start[i]));
  }
  return picture;
}

/// The first step at which `distance` reached half of what it is at the end.
std::int64_t half_way(const std::vector<double>& distance, const std::vector<std::int64_t>& steps) {
  for (std::size_t k = 0; k < distance.size(); ++k)
    if (distance[k] >= distance.back() / 2) return steps[k];
  return steps.back();
}

// ---- A whole run, several parameters

/// A parameter's curve: its largest distance from the start, or the norm of its gradient or update.
struct Curve {
  std::vector<double> heights;
  std::vector<std::int64_t> steps;
  std::optional<train::Statistics> last;
};

Curve curve_of(const Selection& s, std::size_t parameter) {
  Curve d;
  for (const std::int64_t step : s.steps(parameter)) {
    const train::HistorySummary summary = s.history.summary(parameter, step);
    const std::optional<double> height = s.history.of() == train::Quantity::value      ? summary.distance
                                         : s.history.of() == train::Quantity::gradient ? summary.gradient_norm
                                                                                       : summary.update_norm;
    d.heights.push_back(height.value_or(0));
    d.steps.push_back(step);
    d.last = summary.statistics;
  }
  return d;
}

void write_overview(const Selection& s, const InspectOptions& options, std::ostream& out) {
  const bool value = s.history.of() == train::Quantity::value;
  std::size_t width = 0;
  for (const std::size_t i : s.parameters) width = std::max(width, s.history.entries()[i].name.size());
  const std::string what =
      value ? "distance from the start" : fmt::format("|{}|", train::name_of(s.history.of()));
  out << wrapped(fmt::format("{}, steps {} to {}; each line is drawn to its own height", what,
                             s.steps(s.parameters.front()).front(), s.last),
                 0, options.columns)
      << "\n\n";
  const std::size_t spark = spark_columns(options, width + (value ? 33 : 31));
  const std::size_t columns = std::min(spark, s.steps(s.parameters.front()).size());
  const std::vector<Column> table{
      {"", Align::left, width},
      {"", Align::left, columns},
      {value ? "      farthest     half of it" : " largest               last", Align::left}};
  out << heading(table);
  double largest = -1;
  std::string largest_name;
  for (const std::size_t i : s.parameters) {
    const std::string& name = s.history.entries()[i].name;
    const Curve d = curve_of(s, i);
    const auto top = std::max_element(d.heights.begin(), d.heights.end());
    const std::string numbers =
        value && d.last
            ? fmt::format("{:>6} {:>7}    by step {}", fmt::format("[{}]", d.last->farthest),
                          fixed_text(d.last->farthest_value, 3), half_way(d.heights, d.steps))
            : fmt::format("{:>8.3g} step {:<4} {:>8.3g}", *top,
                          d.steps[static_cast<std::size_t>(top - d.heights.begin())], d.heights.back());
    out << line(table, {name, sparkline(d.heights, *top, spark, options.ascii), numbers});
    if (d.heights.back() > largest) {
      largest = d.heights.back();
      largest_name = name;
    }
  }
  out << next_lines(
      {value ? suggestion(Next::features, {s.title, largest_name})
             : suggestion(Next::elements, {s.title, largest_name, train::name_of(s.history.of())})},
      options.columns);
}

// ---- A whole run, one parameter

constexpr std::size_t kFeatureColumns = 42;  // beside the picture

void write_ranking(const Selection& s, const InspectOptions& options, std::ostream& out) {
  constexpr std::size_t kFirst = 5, kLastOnes = 3;
  const std::size_t parameter = s.parameters.front();
  const train::History::Item& p = s.history.entries()[parameter];
  std::vector<std::int64_t> steps = s.steps(parameter);
  std::erase_if(steps, [&](std::int64_t step) { return !s.history.has_numbers(parameter, step); });
  const auto [path, distances] = picture_of(s, parameter, steps);
  const std::vector<std::size_t> ranked = path.ranking();
  double top = 0;
  for (const auto& element : distances)
    top = std::max(top, *std::max_element(element.begin(), element.end()));

  const std::int64_t every = s.history.recording()->every();
  out << fmt::format("{} {}, steps 0 to {}{};{}all lines to the same height, {}\n\n", p.name, p.shape.text(),
                     steps.back(), every == 1 ? "" : fmt::format(", every {}", every),
                     options.columns < kWideColumns ? "\n" : " ", fixed_text(top, 3));
  const std::size_t columns = std::min(spark_columns(options, kFeatureColumns), steps.size());
  const std::optional<double> start = common_start(path.start);
  std::size_t width = 6;
  for (const double value : path.last) width = std::max(width, fixed_text(value, 3).size());
  const std::vector<Column> table{
      {"feature", Align::right, 7},
      {"value", Align::right, width},
      {start ? fmt::format("distance from {}", *start) : "distance from its start", Align::left, columns, 3},
      {"half way", Align::left, 8},
      {options.columns < kWideColumns ? "agreement" : "agreement of gradients", Align::left, 0, 3}};
  out << heading(table, 2);
  const bool shorten = !options.all && ranked.size() > kFirst + kLastOnes + 1;
  for (std::size_t k = 0; k < ranked.size(); ++k) {
    if (shorten && k == kFirst) {
      out << line(table, {"...", fmt::format("{} more: --all", ranked.size() - kFirst - kLastOnes)}, 2);
      k = ranked.size() - kLastOnes;
    }
    const std::size_t i = ranked[k];
    out << line(table,
                {fmt::format("[{}]", i), fixed_text(path.last[i], 3),
                 sparkline(distances[i], top, columns, options.ascii),
                 fmt::format("step {:>3}", path.half_way[i] < 0 ? steps.back() : path.half_way[i]),
                 fmt::format("{:.2f}", path.agreement(i))},
                2);
  }
  out << "\n  agreement  "
      << wrapped(
             fmt::format(
                 "|sum of gradients| / sum of |gradients|{}: 1 when every step pushed the same way, 0 when "
                 "the pushes cancel. AdamW makes a steady small gradient go further than a large one that "
                 "changes its sign; with SGD the way is exactly lr * sum of gradients.",
                 every == 1 ? "" : fmt::format(", of the recorded steps, every {}th", every)),
             13, options.columns)
      << "\n";
  const std::string first = std::to_string(std::min<std::int64_t>(5, s.last));
  out << next_lines(
      {suggestion(Next::first_steps, {s.title, p.name, first}), suggestion(Next::csv, {s.title, p.name})},
      options.columns);
}

}  // namespace

void write_table(const Selection& selection, const InspectOptions& options, std::ostream& out) {
  Selection recorded = selection, saved = selection;
  const auto is_saved = [&](std::size_t i) { return selection.history.from_checkpoints(i); };
  std::erase_if(recorded.parameters, is_saved);
  std::erase_if(saved.parameters, [&](std::size_t i) { return !is_saved(i); });
  if (!selection.whole_run) {
    write_steps(selection, options, out);
  } else {
    if (selection.parameters.size() == 1 && saved.parameters.empty() &&
        selection.history.of() == train::Quantity::value)
      write_ranking(recorded, options, out);
    else if (!recorded.parameters.empty())
      write_overview(recorded, options, out);
    if (!recorded.parameters.empty() && !saved.parameters.empty()) out << "\n";
    if (!saved.parameters.empty()) write_steps(saved, options, out);
  }
  if (!selection.to_record.empty() && selection.history.of() == train::Quantity::value)
    out << "\n"
        << wrapped(fmt::format("not recorded: values at the checkpoints, steps {}; to record it, train with",
                               steps_text(selection.history.checkpoint_steps())),
                   0, options.columns)
        << "\n  --set " << selection.to_record << "\n";
}

}  // namespace handgrad::view
