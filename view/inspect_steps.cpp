// inspect for people: some steps, a table for each parameter.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "handgrad/view/inspect.h"
#include "handgrad/view/text.h"

namespace handgrad::view {
namespace {

constexpr std::size_t kWideColumns =
    88;  // of a whole table; on a narrow terminal lr, norm and std are left out

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
struct Columns {
  train::Quantity of;
  bool norms, std, from_start;
  int index;
};

void write_header(const Columns& columns, std::ostream& out) {
  out << fmt::format("  {:>5}", "step");
  if (columns.norms)
    out << fmt::format("  {:>8}  {:>10} ", "lr",
                       columns.of == train::Quantity::update ? "|update|" : "|gradient|");
  out << fmt::format(" {:>9}", "mean");
  if (columns.std) out << fmt::format(" {:>9}", "std");
  out << fmt::format(" {:>9} {:>9}   {}\n", "min", "max", columns.from_start ? "farthest" : "largest");
}

void write_row(std::int64_t step, const train::HistorySummary& summary, const Columns& columns,
               std::ostream& out) {
  out << fmt::format("  {:>5}", step);
  if (columns.norms)
    out << fmt::format(
        "  {:>8}  {:>10} ", step > 0 && summary.lr ? fmt::format("{:.5f}", *summary.lr) : "-",
        norm_text(columns.of == train::Quantity::update ? summary.update_norm : summary.gradient_norm));
  const std::optional<train::Statistics>& t = summary.statistics;
  const auto text = [&](double train::Statistics::*number) {
    return t ? number_text((*t).*number, columns.of) : std::string("-");
  };
  out << fmt::format(" {:>9}", text(&train::Statistics::mean));
  if (columns.std) out << fmt::format(" {:>9}", text(&train::Statistics::std));
  out << fmt::format(" {:>9} {:>9}", text(&train::Statistics::min), text(&train::Statistics::max));
  out << (t ? fmt::format("   {:<{}}{:>9}\n", index_text(t->farthest), columns.index,
                          number_text(t->farthest_value, columns.of))
            : "   -\n");
}

void write_numbers(const train::HistoryStep& record, const Columns& columns, bool beside, std::ostream& out) {
  const std::string indent(columns.std ? 9 : 1, ' ');
  const auto text = [](const std::vector<double>& numbers, std::size_t i) {
    return numbers.empty() ? std::string("-") : fmt::format("{:.8g}", numbers[i]);
  };
  out << indent << fmt::format("{:>8} {:>16}", "feature", train::name_of(columns.of));
  if (beside) out << fmt::format(" {:>16} {:>16}", "gradient", "update");
  out << "\n";
  for (std::size_t i = 0; i < record.numbers.size(); ++i) {
    out << indent << fmt::format("{:>8} {:>16.8g}", index_text(i), record.numbers[i]);
    if (beside) out << fmt::format(" {:>16} {:>16}", text(record.gradient, i), text(record.update, i));
    out << "\n";
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
    const Columns columns{s.history.of(), wide && recorded, wide,
                          recorded && s.history.of() == train::Quantity::value, index};
    out << fmt::format("\n{} {}\n", entry.name, entry.shape.text());
    write_header(columns, out);
    for (const std::int64_t step : steps) {
      write_row(step, s.history.summary(parameter, step), columns, out);
      if (!options.values) continue;
      if (s.history.has_numbers(parameter, step)) {
        write_numbers(s.history.read(parameter, step), columns,
                      recorded && columns.of == train::Quantity::value, out);
      } else {
        out << "  no values at this step\n";
      }
    }
  }
}

}  // namespace handgrad::view
