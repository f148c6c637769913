#include "handgrad/view/summary.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "handgrad/view/table.h"
#include "handgrad/view/text.h"

namespace handgrad::view {

namespace {

/// Parameters that differ in the number of their block alone.
struct SummaryRow {
  std::string name;  // "trf_blocks.*.norm1.scale", a pattern, when there are several
  const nn::NamedParameter* first;
  std::int64_t blocks;

  std::string shape() const {
    const std::string one = first->parameter->shape().text();
    return blocks == 1 ? one : fmt::format("{} x {}", one, blocks);
  }
};

/// `name` with a star for its first part that is a number; as it is when there is none.
std::string pattern_of(const std::string& name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (name.find_first_not_of("0123456789", begin) >= end)
      return name.substr(0, begin) + "*" + name.substr(end);
    begin = end + 1;
  }
  return name;
}

const char* decay_of(const Parameter& parameter) {
  return parameter.frozen() ? "frozen" : parameter.decay() ? "yes" : "no";
}

bool alike(const nn::NamedParameter& a, const nn::NamedParameter& b) {
  return a.parameter->shape() == b.parameter->shape() && a.owner->type() == b.owner->type() &&
         std::string_view(decay_of(*a.parameter)) == decay_of(*b.parameter);
}

std::vector<SummaryRow> rows_of(const std::vector<nn::NamedParameter>& parameters) {
  std::vector<SummaryRow> rows;
  std::map<std::string, std::vector<std::size_t>> by_pattern;
  for (const nn::NamedParameter& p : parameters) {
    auto& same = by_pattern[pattern_of(p.name)];
    const auto found =
        std::find_if(same.begin(), same.end(), [&](std::size_t i) { return alike(*rows[i].first, p); });
    if (found != same.end()) {
      rows[*found].name = pattern_of(p.name);
      ++rows[*found].blocks;
      continue;
    }
    same.push_back(rows.size());
    rows.push_back({p.name, &p, 1});
  }
  return rows;
}

}  // namespace

std::string summary(const nn::Module& module) {
  const auto parameters = module.named_parameters();
  const std::vector<SummaryRow> rows = rows_of(parameters);
  std::int64_t total = 0, without_decay = 0;
  for (const nn::NamedParameter& p : parameters) {
    total += p.parameter->numel();
    if (!p.parameter->decay()) without_decay += p.parameter->numel();
  }
  Table table(
      {{"parameter", Align::left, 20}, {"shape"}, {"count"}, {"decay", Align::left, 6}, {"in", Align::left}});
  for (const SummaryRow& row : rows)
    table.add({row.name, row.shape(), grouped(row.blocks * row.first->parameter->numel()),
               decay_of(*row.first->parameter), row.first->owner->type()});
  table.add({fmt::format("{} parameters", parameters.size()), "", grouped(total),
             fmt::format("of them {} without decay", grouped(without_decay))});
  return table.text();
}

}  // namespace handgrad::view
