#include "handgrad/cli/movement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "handgrad/train/recording.h"
#include "handgrad/view/inspect.h"
#include "handgrad/view/table.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

using view::Align, view::Column;

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

/// The initial value of all elements, as text; empty when they differ.
std::string start_of(const TrackedParameter& m) {
  const std::optional<double> start = view::common_start(m.start);
  return start ? fmt::format("{}", *start) : "";
}

}  // namespace

train::Statistics TrackedParameter::statistics() const {
  return train::statistics(parameter->values(), start);
}

double TrackedParameter::distance() const {
  const train::Statistics s = statistics();
  return start.empty() ? 0 : std::abs(s.farthest_value - start[s.farthest]);
}

Movement::Movement(const train::Run& run, const std::filesystem::path& recording) {
  for (const auto& [name, parameter, owner] : run.trainer().parameters()) {
    const auto& inspected = run.inspected();
    if (parameter->rank() != 1 || std::find(inspected.begin(), inspected.end(), name) == inspected.end())
      continue;
    const std::string path = view::outer(name);
    parameters_.push_back({name, view::last_part(name), path, parameter, parameter->values()});
    add_once(kinds_, parameters_.back().kind);
    add_once(owners_, path);
  }
  if (recording.empty() || !std::filesystem::exists(recording)) return;
  const train::Recording recorded(recording);
  if (recorded.last_step() < 0) return;
  for (std::size_t i = 0; i < recorded.parameters().size(); ++i)
    for (TrackedParameter& m : parameters_)
      if (m.name == recorded.parameters()[i].name) m.start = recorded.read(i, 0).value;
}

std::string Movement::starts() const {
  std::vector<std::string> names;
  for (const std::string& kind : kinds_) {
    std::string start;
    for (const TrackedParameter& m : parameters_)
      if (m.kind == kind && (start.empty() || start_of(m) != start)) start += start_of(m);
    if (start != "0" && start != "1") return "";
    names.emplace_back(start == "0" ? "zeros" : "ones");
  }
  return view::listed(names, "and");
}

const TrackedParameter* Movement::find(const std::string& kind, const std::string& owner) const {
  for (const TrackedParameter& m : parameters_)
    if (m.kind == kind && m.owner == owner) return &m;
  return nullptr;
}

const TrackedParameter* Movement::farthest(const std::string& kind) const {
  const TrackedParameter* best = nullptr;
  double largest = -1;
  for (const TrackedParameter& m : parameters_) {
    if (!kind.empty() && m.kind != kind) continue;
    const double distance = m.distance();
    if (distance <= largest) continue;
    largest = distance;
    best = &m;
    if (std::isnan(distance)) break;
  }
  return best;
}

// ---- Tables

namespace {

constexpr std::size_t kMostModules = 3;     // side by side
constexpr std::size_t kModuleColumns = 90;  // that they take

/// "scale - 1", "shift", "gain - its start": the name of this kind's distance.
std::string distance_name(const Movement& movement, const std::string& kind) {
  std::string start;
  for (const TrackedParameter& m : movement.parameters()) {
    if (m.kind != kind) continue;
    const std::string own = start_of(m);
    if (own.empty() || (!start.empty() && own != start)) return kind + " - its start";
    start = own;
  }
  return start == "0" ? kind : kind + " - " + start;
}

/// A distance in a few digits: 0, 0.0009, 0.014, 0.826.
std::string distance_text(double distance) {
  if (distance == 0) return "0";
  return distance < 0.01 ? fmt::format("{:.4f}", distance) : view::fixed_text(distance, 3);
}

std::string loss_text(std::optional<double> loss) { return loss ? view::fixed_text(*loss, 3) : "-"; }

std::size_t module_width(const std::string& owner) {
  return std::max<std::size_t>(view::last_part(owner).size(), 7);
}

/// The columns of the rows that a run prints while it trains.
std::vector<Column> row_columns(const Movement& movement, Layout layout) {
  std::vector<Column> columns{
      {"step", Align::right, 6}, {"batch", Align::right, 6}, {"validation", Align::right, 10, 1}};
  for (const std::string& kind : movement.kinds()) {
    if (layout == Layout::narrow) {
      columns.push_back({"|" + distance_name(movement, kind) + "|", Align::right, 10});
    } else if (layout == Layout::farthest) {
      columns.push_back({"farthest", Align::left, 38, 4});
    } else {
      std::size_t gap = &kind == &movement.kinds().front() ? 4 : 5;
      for (const std::string& owner : movement.owners()) {
        columns.push_back({view::last_part(owner), Align::left, module_width(owner), gap});
        gap = 1;
      }
    }
  }
  return columns;
}

/// The four cells of a parameter in the table at the end.
std::vector<std::string> final_cells(const TrackedParameter& m) {
  const train::Statistics s = m.statistics();
  return {view::fixed_text(s.mean, 3), view::fixed_text(s.min, 3), view::fixed_text(s.max, 3),
          fmt::format("{:>5} {:>6}", fmt::format("[{}]", s.farthest), view::fixed_text(s.farthest_value, 3))};
}

}  // namespace

Layout layout_for(const Movement& movement, std::size_t columns) {
  if (columns < kModuleColumns) return Layout::narrow;
  return movement.owners().size() <= kMostModules && movement.kinds().size() <= 2 ? Layout::modules
                                                                                  : Layout::farthest;
}

std::string rows_heading(const Movement& movement, Layout layout) {
  const std::string below = view::heading(row_columns(movement, layout));
  if (layout == Layout::narrow) return below;
  std::size_t width = layout == Layout::farthest ? 38 : 0;
  if (layout == Layout::modules)
    for (const std::string& owner : movement.owners()) width += module_width(owner) + 1;
  std::vector<Column> top{{"", Align::left, 6}, {"loss", Align::center, 16}};
  for (const std::string& kind : movement.kinds())
    top.push_back({fmt::format("largest |{}|", distance_name(movement, kind)), Align::left, width, 4});
  return view::heading(top) + below;
}

std::string row_text(const Movement& movement, Layout layout, std::int64_t step, std::optional<double> loss,
                     std::optional<double> validation_loss) {
  std::vector<std::string> cells{std::to_string(step), loss_text(loss), loss_text(validation_loss)};
  for (const std::string& kind : movement.kinds()) {
    if (layout == Layout::modules) {
      for (const std::string& owner : movement.owners()) {
        const TrackedParameter* m = movement.find(kind, owner);
        cells.push_back(m == nullptr ? "-" : distance_text(m->distance()));
      }
      continue;
    }
    const TrackedParameter* m = movement.farthest(kind);
    const std::string distance = distance_text(m->distance());
    cells.push_back(layout == Layout::narrow
                        ? distance
                        : fmt::format("{:<6} {} [{}]", distance, m->owner, m->statistics().farthest));
  }
  return view::line(row_columns(movement, layout), cells);
}

std::string final_table(const Movement& movement, std::int64_t step, Layout layout) {
  if (movement.empty()) return "";
  const bool narrow = layout == Layout::narrow;
  const std::string starts = movement.starts();
  const std::string text =
      fmt::format("{} after {} steps{}\n\n", view::listed(movement.kinds(), "and"), step,
                  starts.empty() ? "" : (narrow ? "\n" : " ") + fmt::format("(they began as {})", starts));
  // A row for each parameter, or for each module with all kinds side by side.
  std::vector<std::pair<std::string, std::vector<const TrackedParameter*>>> rows;
  for (const TrackedParameter& m : movement.parameters())
    if (narrow) rows.push_back({m.name, {&m}});
  for (const std::string& owner : movement.owners()) {
    if (narrow) break;
    rows.push_back({owner, {}});
    for (const std::string& kind : movement.kinds()) rows.back().second.push_back(movement.find(kind, owner));
  }
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  std::vector<Column> top{{"", Align::left, width}}, columns = top;
  for (std::size_t i = 0; i < rows.front().second.size(); ++i) {
    top.push_back({movement.kinds()[i], Align::center, 35});
    columns.insert(columns.end(), {{"mean", Align::right, 6, narrow ? std::size_t{1} : 2},
                                   {"min", Align::right, 6, 1},
                                   {"max", Align::right, 6, 1},
                                   {"farthest", Align::right, 12, narrow ? std::size_t{1} : 3}});
  }
  std::string table = narrow ? "" : view::heading(top);
  table += view::heading(columns);
  for (const auto& [name, parameters] : rows) {
    std::vector<std::string> cells{name};
    for (const TrackedParameter* m : parameters) {
      const auto more = m == nullptr ? std::vector<std::string>(4) : final_cells(*m);
      cells.insert(cells.end(), more.begin(), more.end());
    }
    table += view::line(columns, cells);
  }
  return text + table;
}

}  // namespace handgrad::cli
