#include "handgrad/cli/movement_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "handgrad/view/inspect.h"
#include "handgrad/view/table.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
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
