// inspect for people: what moved, how far, when and why.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <ostream>

#include "handgrad/train/inspect.h"
#include "handgrad/train/program_name.h"
#include "handgrad/train/text.h"

namespace handgrad::train {
namespace {

constexpr std::size_t kSparkColumns = 30;  // at most

/// Columns of the small pictures beside `others` columns of text.
std::size_t spark_columns(const InspectOptions& options, std::size_t others) {
  const std::size_t room = options.columns > others ? options.columns - others : 0;
  return std::clamp<std::size_t>(room, 3, kSparkColumns);
}

double norm(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

std::string index_text(std::size_t i) { return fmt::format("[{}]", i); }

/// What a parameter is compared with: "1", "0", or "its start" when its elements started apart.
std::string start_text(const std::vector<double>& start) {
  const bool one_value =
      std::all_of(start.begin(), start.end(), [&](double v) { return v == start.front(); });
  return one_value && !start.empty() ? fmt::format("{}", start.front()) : "its start";
}

/// The way of one parameter through the run: for each recorded step its farthest distance, and for each
/// element all that the ranking needs.
struct Way {
  std::vector<double> start, last;
  std::vector<std::int64_t> steps;
  std::vector<double> farthest_distance;       // of any element, by step
  std::vector<std::vector<double>> distances;  // by element, then step; only when asked for
  std::vector<double> gradient_sum, gradient_absolute_sum;
};

Way way_of(const Selection& s, std::size_t parameter, bool by_element) {
  Way way;
  for (const std::int64_t step : s.recording.steps(0, s.last)) {
    RecordedStep record = s.recording.read(parameter, step);
    if (step == 0) {
      way.start = record.value;
      way.gradient_sum.assign(record.value.size(), 0);
      way.gradient_absolute_sum.assign(record.value.size(), 0);
      if (by_element) way.distances.resize(record.value.size());
    }
    double largest = 0;
    for (std::size_t i = 0; i < record.value.size(); ++i) {
      const double distance = std::abs(record.value[i] - way.start[i]);
      if (!(distance <= largest)) largest = distance;
      if (by_element) way.distances[i].push_back(distance);
      if (record.gradient.empty()) continue;
      way.gradient_sum[i] += record.gradient[i];
      way.gradient_absolute_sum[i] += std::abs(record.gradient[i]);
    }
    way.steps.push_back(step);
    way.farthest_distance.push_back(largest);
    way.last = std::move(record.value);
  }
  return way;
}

/// The first step at which `distance` reached half of what it is at the end.
std::int64_t half_way(const std::vector<double>& distance, const std::vector<std::int64_t>& steps) {
  for (std::size_t k = 0; k < distance.size(); ++k)
    if (distance[k] >= distance.back() / 2) return steps[k];
  return steps.back();
}

// ---- Some steps

constexpr std::size_t kStepColumns =
    88;  // of the whole table; on a narrow terminal lr, |gradient| and std are left out

void write_steps(const Selection& s, const InspectOptions& options, std::ostream& out) {
  const std::string what = s.asked.empty() ? "all recorded parameters" : s.asked;
  const std::int64_t total = std::max(s.planned_steps, s.recording.last_step());
  const std::string heading =
      s.first == s.last ? fmt::format("{} after step {} of {}", what, s.first, total)
                        : fmt::format("{} after steps {} to {} of {}", what, s.first, s.last, total);
  out << wrapped(heading + (s.first > 0 ? "; the gradient is the one that made the step"
                                        : "; step 0 is the state before training"),
                 0, options.columns)
      << "\n";
  const bool wide = options.columns >= kStepColumns;
  for (const std::size_t parameter : s.parameters) {
    const RecordedParameter& p = s.recording.parameters()[parameter];
    const std::vector<double> start = s.recording.read(parameter, 0).value;
    out << fmt::format("\n{} {}\n  {:>5}", p.name, p.shape.text(), "step");
    if (wide) out << fmt::format("  {:>8}  {:>10} ", "lr", "|gradient|");
    out << fmt::format(" {:>9}", "mean");
    if (wide) out << fmt::format(" {:>9}", "std");
    out << fmt::format(" {:>9} {:>9}   farthest\n", "min", "max");
    for (const std::int64_t step : s.recording.steps(s.first, s.last)) {
      const RecordedStep record = s.recording.read(parameter, step);
      const Statistics t = statistics(record.value, start);
      out << fmt::format("  {:>5}", step);
      if (wide)
        out << fmt::format("  {:>8}  {:>10} ", step > 0 ? fmt::format("{:.5f}", record.lr) : "-",
                           record.gradient.empty() ? "-" : fmt::format("{:.4f}", norm(record.gradient)));
      out << fmt::format(" {:>9.6f}", t.mean);
      if (wide) out << fmt::format(" {:>9.6f}", t.std);
      out << fmt::format(" {:>9.6f} {:>9.6f}   {:<5}{:>9.6f}\n", t.min, t.max, index_text(t.farthest),
                         record.value.empty() ? 0 : record.value[t.farthest]);
      if (!options.values) continue;
      out << fmt::format("         {:>8} {:>16} {:>16} {:>16}\n", "feature", "value", "gradient", "update");
      for (std::size_t i = 0; i < record.value.size(); ++i)
        out << fmt::format("         {:>8} {:>16.8g} {:>16} {:>16}\n", index_text(i), record.value[i],
                           record.gradient.empty() ? "-" : fmt::format("{:.8g}", record.gradient[i]),
                           record.update.empty() ? "-" : fmt::format("{:.8g}", record.update[i]));
    }
  }
}

// ---- A whole run, several parameters

void write_overview(const Selection& s, const InspectOptions& options, std::ostream& out) {
  std::size_t width = 0;
  for (const std::size_t i : s.parameters) width = std::max(width, s.recording.parameters()[i].name.size());
  out << wrapped(fmt::format("distance from the start, steps 0 to {}; each line is drawn to its own height",
                             s.last),
                 0, options.columns)
      << "\n\n";
  const std::size_t spark = spark_columns(options, width + 33);
  const std::size_t columns = std::min(spark, static_cast<std::size_t>(s.recording.step_count()));
  out << fmt::format("{:<{}}  {:>14}     half of it\n", "", width + 2 + columns, "farthest");
  double largest = -1;
  std::string largest_name;
  for (const std::size_t i : s.parameters) {
    const std::string& name = s.recording.parameters()[i].name;
    const Way way = way_of(s, i, false);
    const Statistics t = statistics(way.last, way.start);
    const double top = *std::max_element(way.farthest_distance.begin(), way.farthest_distance.end());
    out << fmt::format("{:<{}}  {}  {:>6} {:>7.3f}    by step {}\n", name, width,
                       sparkline(way.farthest_distance, top, spark, options.ascii), index_text(t.farthest),
                       way.last.empty() ? 0 : way.last[t.farthest],
                       half_way(way.farthest_distance, way.steps));
    if (way.farthest_distance.back() > largest) {
      largest = way.farthest_distance.back();
      largest_name = name;
    }
  }
  out << next_lines({{fmt::format("{} inspect {} {}", program_name(), shell_word(s.title), largest_name),
                      "its features, and why they moved"}},
                    options.columns);
}

// ---- A whole run, one parameter

constexpr std::size_t kFeatureColumns = 42;  // beside the picture

void write_feature(const Way& way, std::size_t i, double top, const InspectOptions& options,
                   std::ostream& out) {
  out << fmt::format("  {:>7}  {:>6.3f}   {}  step {:>3}   {:.2f}\n", index_text(i), way.last[i],
                     sparkline(way.distances[i], top, spark_columns(options, kFeatureColumns), options.ascii),
                     half_way(way.distances[i], way.steps),
                     agreement(way.gradient_sum[i], way.gradient_absolute_sum[i]));
}

void write_ranking(const Selection& s, const InspectOptions& options, std::ostream& out) {
  constexpr std::size_t kFirst = 5, kLastOnes = 3;
  const std::size_t parameter = s.parameters.front();
  const RecordedParameter& p = s.recording.parameters()[parameter];
  const Way way = way_of(s, parameter, true);
  std::vector<std::size_t> ranked(way.last.size());
  std::iota(ranked.begin(), ranked.end(), std::size_t{0});
  const auto distance = [&](std::size_t i) { return way.distances[i].back(); };
  std::stable_sort(ranked.begin(), ranked.end(), [&](auto a, auto b) { return distance(a) > distance(b); });
  double top = 0;
  for (const auto& element : way.distances)
    top = std::max(top, *std::max_element(element.begin(), element.end()));

  out << fmt::format("{} {}, steps 0 to {};{}all lines to the same height, {:.3f}\n\n", p.name,
                     p.shape.text(), s.last, options.columns < kStepColumns ? "\n" : " ", top);
  const std::size_t columns = std::min(spark_columns(options, kFeatureColumns), way.steps.size());
  out << fmt::format("  {:>7}  {:>6}   {:<{}}  {:<9}  {}\n", "feature", "value",
                     "distance from " + start_text(way.start), columns, "half way",
                     options.columns < kStepColumns ? "agreement" : "agreement of gradients");
  const bool shorten = !options.all && ranked.size() > kFirst + kLastOnes + 1;
  for (std::size_t k = 0; k < ranked.size(); ++k) {
    if (shorten && k == kFirst) {
      out << fmt::format("  {:>7}  {} more: --all\n", "...", ranked.size() - kFirst - kLastOnes);
      k = ranked.size() - kLastOnes;
    }
    write_feature(way, ranked[k], top, options, out);
  }
  out << "\n  agreement  "
      << wrapped(
             "|sum of gradients| / sum of |gradients|: 1 when every step pushed the same way, 0 when the "
             "pushes cancel. "
             "AdamW makes a steady small gradient go further than a large one that changes its sign; with "
             "SGD the way "
             "is exactly lr * sum of gradients.",
             13, options.columns)
      << "\n";
  out << next_lines(
      {{fmt::format("{} inspect {} {} --step 1:5", program_name(), shell_word(s.title), p.name),
        "its first steps, in numbers"},
       {fmt::format("{} inspect {} {} --format csv", program_name(), shell_word(s.title), p.name),
        "every number"}},
      options.columns);
}

}  // namespace

void write_table(const Selection& selection, const InspectOptions& options, std::ostream& out) {
  if (!selection.whole_run) return write_steps(selection, options, out);
  if (selection.parameters.size() == 1) return write_ranking(selection, options, out);
  write_overview(selection, options, out);
}

}  // namespace handgrad::train
