#include "handgrad/cli/movement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "handgrad/train/recording.h"
#include "handgrad/view/table.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

}  // namespace

Farthest TrackedParameter::farthest() const {
  Farthest result;
  const Array& array = parameter->array();
  for (std::size_t i = 0; i < start.size(); ++i) {
    const double value = array.value(static_cast<std::int64_t>(i));
    const double distance = std::abs(value - start[i]);
    if (i == 0 || !(distance <= result.distance)) result = {i, value, distance};
    if (std::isnan(distance)) break;
  }
  return result;
}

std::string TrackedParameter::common_start() const {
  const bool common = std::all_of(start.begin(), start.end(), [&](double v) { return v == start.front(); });
  return common && !start.empty() ? fmt::format("{}", start.front()) : "";
}

Movement::Movement(const train::Run& run, const std::filesystem::path& recording) {
  for (const auto& [name, parameter, owner] : run.trainer().parameters()) {
    const auto& inspected = run.inspected();
    if (parameter->rank() != 1 || std::find(inspected.begin(), inspected.end(), name) == inspected.end())
      continue;
    const std::size_t dot = name.rfind('.');
    const std::string path = dot == std::string::npos ? "" : name.substr(0, dot);
    parameters_.push_back({name, last_part(name), path, parameter, parameter->values()});
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
  std::string text;
  for (const std::string& kind : kinds_) {
    std::string start;
    for (const TrackedParameter& m : parameters_)
      if (m.kind == kind && (start.empty() || m.common_start() != start)) start += m.common_start();
    if (start != "0" && start != "1") return "";
    text += (text.empty() ? "" : &kind == &kinds_.back() ? " and " : ", ");
    text += start == "0" ? "zeros" : "ones";
  }
  return text;
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
    const double distance = m.farthest().distance;
    if (distance <= largest) continue;
    largest = distance;
    best = &m;
    if (std::isnan(distance)) break;
  }
  return best;
}

std::string distance_name(const Movement& movement, const std::string& kind) {
  std::string start;
  for (const TrackedParameter& m : movement.parameters()) {
    if (m.kind != kind) continue;
    const std::string own = m.common_start();
    if (own.empty() || (!start.empty() && own != start)) return kind + " - its start";
    start = own;
  }
  return start == "0" ? kind : kind + " - " + start;
}

std::string distance_text(double distance) {
  if (distance == 0) return "0";
  return distance < 0.01 ? fmt::format("{:.4f}", distance) : view::fixed_text(distance, 3);
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// ---- Tables

namespace {

constexpr std::size_t kMostModules = 3;     // side by side
constexpr std::size_t kModuleColumns = 90;  // that they take

std::string loss_text(std::optional<double> loss) { return loss ? view::fixed_text(*loss, 3) : "-"; }

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::size_t module_width(const std::string& owner) {
  return std::max<std::size_t>(last_part(owner).size(), 7);
}

std::string index_and_value(const TrackedParameter& m, const train::Statistics& s) {
  return fmt::format("{:>5} {:>6}", fmt::format("[{}]", s.farthest),
                     view::fixed_text(m.parameter->array().value(static_cast<std::int64_t>(s.farthest)), 3));
}

}  // namespace

Layout layout_for(const Movement& movement, std::size_t columns) {
  if (columns < kModuleColumns) return Layout::narrow;
  return movement.owners().size() <= kMostModules && movement.kinds().size() <= 2 ? Layout::modules
                                                                                  : Layout::farthest;
}

std::string rows_heading(const Movement& movement, Layout layout) {
  if (layout == Layout::narrow) {
    std::string line = fmt::format("{:>6}  {:>6} {:>10}", "step", "batch", "validation");
    for (const std::string& kind : movement.kinds())
      line += fmt::format("  {:>10}", "|" + distance_name(movement, kind) + "|");
    return trimmed(line);
  }
  std::string top = fmt::format("{:6}  {:^16}", "", "loss");
  std::string below = fmt::format("{:>6}  {:>6} {:>10}", "step", "batch", "validation");
  for (const std::string& kind : movement.kinds()) {
    std::string columns;
    if (layout == Layout::modules) {
      for (const std::string& owner : movement.owners())
        columns += fmt::format("{:<{}} ", last_part(owner), module_width(owner));
    } else {
      columns = fmt::format("{:<38}", "farthest");
    }
    top +=
        fmt::format("    {:<{}}", fmt::format("largest |{}|", distance_name(movement, kind)), columns.size());
    below += "    " + columns;
  }
  return trimmed(top) + trimmed(below);
}

std::string row_text(const Movement& movement, Layout layout, std::int64_t step, std::optional<double> loss,
                     std::optional<double> validation_loss) {
  std::string line = fmt::format("{:>6}  {:>6} {:>10}", step, loss_text(loss), loss_text(validation_loss));
  for (const std::string& kind : movement.kinds()) {
    if (layout == Layout::modules) {
      line += "    ";
      for (const std::string& owner : movement.owners()) {
        const TrackedParameter* m = movement.find(kind, owner);
        line += fmt::format("{:<{}} ", m == nullptr ? "-" : distance_text(m->farthest().distance),
                            module_width(owner));
      }
      continue;
    }
    const TrackedParameter* m = movement.farthest(kind);
    const Farthest f = m->farthest();
    line += layout == Layout::narrow ? fmt::format("  {:>10}", distance_text(f.distance))
                                     : fmt::format("    {:<6} {:<31}", distance_text(f.distance),
                                                   fmt::format("{} [{}]", m->owner, f.index));
  }
  return trimmed(line);
}

std::string final_table(const Movement& movement, std::int64_t step, Layout layout) {
  if (movement.empty()) return "";
  const std::string starts = movement.starts();
  std::string text = fmt::format("{} after {} steps{}\n\n", view::listed(movement.kinds(), "and"), step,
                                 starts.empty()             ? ""
                                 : layout == Layout::narrow ? "\n(they began as " + starts + ")"
                                                            : " (they began as " + starts + ")");
  if (layout == Layout::narrow) {
    view::Table table({{"", view::Align::left},
                       {"mean", view::Align::right, 6, 1, 6},
                       {"min", view::Align::right, 6, 1, 6},
                       {"max", view::Align::right, 6, 1, 6},
                       {"farthest", view::Align::right, 12, 1, 12}});
    for (const TrackedParameter& m : movement.parameters()) {
      const train::Statistics s = train::statistics(m.parameter->values(), m.start);
      table.add({m.name, view::fixed_text(s.mean, 3), view::fixed_text(s.min, 3), view::fixed_text(s.max, 3),
                 index_and_value(m, s)});
    }
    return text + table.text();
  }
  std::size_t width = 0;
  for (const std::string& owner : movement.owners()) width = std::max(width, owner.size());
  std::string top = fmt::format("{:<{}}", "", width), below = top;
  for (const std::string& kind : movement.kinds()) {
    top += fmt::format("  {:^35}", kind);
    below += fmt::format("  {:>6} {:>6} {:>6}   {:>12}", "mean", "min", "max", "farthest");
  }
  text += trimmed(top) + below + "\n";
  for (const std::string& owner : movement.owners()) {
    std::string line = fmt::format("{:<{}}", owner, width);
    for (const std::string& kind : movement.kinds()) {
      const TrackedParameter* m = movement.find(kind, owner);
      if (m == nullptr) {
        line += fmt::format("  {:35}", "");
        continue;
      }
      const train::Statistics s = train::statistics(m->parameter->values(), m->start);
      line += fmt::format("  {:>6} {:>6} {:>6}   {}", view::fixed_text(s.mean, 3), view::fixed_text(s.min, 3),
                          view::fixed_text(s.max, 3), index_and_value(*m, s));
    }
    text += trimmed(line);
  }
  return text;
}

}  // namespace handgrad::cli
