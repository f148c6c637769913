// inspect for people: some steps, a table for each parameter.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "handgrad/view/inspect.h"
#include "handgrad/view/table.h"
#include "handgrad/view/text.h"

namespace handgrad::view {
namespace {

std::string index_text(std::size_t i) { return fmt::format("[{}]", i); }

/// Values are about one; gradients, updates and moments may be very small.
std::string number_text(double number, train::Quantity of) {
  return of == train::Quantity::value ? fixed_text(number, 6) : fmt::format("{:.3g}", number);
}

std::string norm_text(const std::optional<double>& norm) {
  if (!norm) return "-";
  return *norm >= 1e-3 || *norm == 0 ? fixed_text(*norm, 4) : fmt::format("{:.3g}", *norm);
}

std::string steps_heading(const Selection& s) {
  std::string what = s.asked.empty()
                         ? (s.history.recording() != nullptr ? "all recorded parameters" : "all parameters")
                         : s.asked;
  if (s.history.of() != train::Quantity::value)
    what = fmt::format("{} of {}", train::name_of(s.history.of()), what);
  const std::int64_t total = std::max(s.planned_steps, s.history.last_step());
  if (s.whole_run && s.history.of() == train::Quantity::value) return what + ", as the checkpoints hold it";
  what += s.first == s.last ? fmt::format(" after step {} of {}", s.first, total)
                            : fmt::format(" after steps {} to {} of {}", s.first, s.last, total);
  const bool recorded = std::any_of(s.parameters.begin(), s.parameters.end(),
                                    [&](std::size_t i) { return !s.history.from_checkpoints(i); });
  switch (s.history.of()) {
    case train::Quantity::value:
      return what + (!recorded      ? ""
                     : s.first == 0 ? "; step 0 is the state before training"
                                    : "; the gradient is the one that made the step");
    case train::Quantity::gradient:
      return what + "; the one that made the step, before clipping";
    case train::Quantity::update:
      return what + "; the value minus the value before";
    case train::Quantity::first_moment:
    case train::Quantity::second_moment:
      break;
  }
  return what + "; as the checkpoints hold it";
}

/// Columns of one table.
struct Layout {
  train::Quantity of;
  bool norms, std, from_start;
  int index;

  std::vector<Column> columns() const {
    std::vector<Column> all{{"step", Align::right, 5}};
    if (norms) all.push_back({"lr", Align::right, 8});
    if (norms) all.push_back({of == train::Quantity::update ? "|update|" : "|gradient|", Align::right, 10});
    all.push_back({"mean", Align::right, 9, norms ? std::size_t{2} : 1});
    if (std) all.push_back({"std", Align::right, 9, 1});
    all.push_back({"min", Align::right, 9, 1});
    all.push_back({"max", Align::right, 9, 1});
    all.push_back({from_start ? "farthest" : "largest", Align::left, 0, 3});
    return all;
  }

  std::vector<std::string> cells(std::int64_t step, const train::HistorySummary& summary) const {
    std::vector<std::string> all{std::to_string(step)};
    if (norms) all.push_back(step > 0 && summary.lr ? fmt::format("{:.5f}", *summary.lr) : "-");
    if (norms)
      all.push_back(norm_text(of == train::Quantity::update ? summary.update_norm : summary.gradient_norm));
    const std::optional<train::Statistics>& t = summary.statistics;
    const auto add = [&](double train::Statistics::*number) {
      all.push_back(t ? number_text((*t).*number, of) : "-");
    };
    add(&train::Statistics::mean);
    if (std) add(&train::Statistics::std);
    add(&train::Statistics::min);
    add(&train::Statistics::max);
    all.push_back(
        t ? fmt::format("{:<{}}{:>9}", index_text(t->farthest), index, number_text(t->farthest_value, of))
          : "-");
    return all;
  }
};

void write_numbers(const train::HistoryStep& record, const Layout& layout, bool beside, std::ostream& out) {
  const std::size_t indent = layout.std ? 9 : 1;
  std::vector<Column> columns{{"feature", Align::right, 8}, {train::name_of(layout.of), Align::right, 16, 1}};
  if (beside)
    columns.insert(columns.end(), {{"gradient", Align::right, 16, 1}, {"update", Align::right, 16, 1}});
  const auto text = [](const std::vector<double>& numbers, std::size_t i) {
    return numbers.empty() ? std::string("-") : fmt::format("{:.8g}", numbers[i]);
  };
  out << heading(columns, indent);
  for (std::size_t i = 0; i < record.numbers.size(); ++i) {
    std::vector<std::string> cells{index_text(i), text(record.numbers, i)};
    if (beside) cells.insert(cells.end(), {text(record.gradient, i), text(record.update, i)});
    out << line(columns, cells, indent);
  }
}

}  // namespace

void write_steps(const Selection& s, const InspectOptions& options, std::ostream& out) {
  out << wrapped(steps_heading(s), 0, options.columns) << "\n";
  const bool wide = options.columns >= kWideColumns;
  for (const std::size_t parameter : s.parameters) {
    const std::vector<std::int64_t> steps = s.steps(parameter);
    if (steps.empty()) continue;
    const train::History::Item& entry = s.history.entries()[parameter];
    const bool recorded = !s.history.from_checkpoints(parameter);
    const int index =
        std::max(5, static_cast<int>(index_text(static_cast<std::size_t>(entry.shape.numel())).size()) + 1);
    const Layout layout{s.history.of(), wide && recorded, wide,
                        recorded && s.history.of() == train::Quantity::value, index};
    out << fmt::format("\n{} {}\n", entry.name, entry.shape.text());
    const std::vector<Column> columns = layout.columns();
    out << heading(columns, 2);
    for (const std::int64_t step : steps) {
      out << line(columns, layout.cells(step, s.history.summary(parameter, step)), 2);
      if (!options.values) continue;
      if (s.history.has_numbers(parameter, step)) {
        write_numbers(s.history.read(parameter, step), layout,
                      recorded && layout.of == train::Quantity::value, out);
      } else {
        out << "  no values at this step\n";
      }
    }
  }
}

}  // namespace handgrad::view
