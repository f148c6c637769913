#include "handgrad/cli/movement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "handgrad/train/recording.h"
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

}  // namespace handgrad::cli
