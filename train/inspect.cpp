#include "handgrad/train/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "handgrad/core/error.h"
#include "handgrad/nn/pattern.h"
#include "handgrad/nn/safetensors.h"
#include "handgrad/train/program_name.h"

namespace handgrad::train {
namespace {

/// Steps that the run was to make, and how it stands: what its folder says, where it says it.
std::int64_t planned_steps(const std::filesystem::path& run) {
  std::ifstream file(run / "config.json");
  const auto config =
      nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  if (!config.is_object() || !config.contains("train") || !config["train"].is_object()) return 0;
  const auto steps = config["train"].find("steps");
  return steps != config["train"].end() && steps->is_number_integer() ? steps->get<std::int64_t>() : 0;
}

[[noreturn]] void refuse_name(const std::string& title, const std::string& pattern,
                              const Recording& recording) {
  constexpr std::size_t kShown = 3;  // of GPT-2's 50 these tell enough
  const auto& all = recording.parameters();
  std::string known;
  for (std::size_t i = 0; i < std::min(all.size(), kShown); ++i) known += (i == 0 ? "" : ", ") + all[i].name;
  if (all.size() > kShown) known += fmt::format(" and {} more", all.size() - kShown);
  throw Error(
      "inspect " + title, fmt::format("nothing recorded is named '{}'", pattern),
      {{"recorded ", known.empty() ? "nothing" : known}},
      "a name, the end of one (scale) or a pattern ('*.scale'); inspect.parameters of the config chooses");
}

std::vector<std::size_t> find(const std::vector<std::string>& patterns, const std::string& title,
                              const Recording& recording) {
  std::vector<bool> chosen(recording.parameters().size(), patterns.empty());
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (!nn::matches(pattern, recording.parameters()[i].name)) continue;
      chosen[i] = found = true;
    }
    if (!found) refuse_name(title, pattern, recording);
  }
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) positions.push_back(i);
  return positions;
}

std::int64_t parse_step(const std::string& title, std::string_view text, std::string_view whole) {
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc() || end != text.data() + text.size() || step < 0)
    throw ValueError("inspect " + title,
                     fmt::format("--step must be a step, a range or 'last', got '{}'", whole), {},
                     "--step 250, --step 1:5, --step last");
  return step;
}

std::string how_far(const Selection& s) {
  const std::int64_t last = s.recording.last_step();
  return s.planned_steps > last ? fmt::format("step {} of {} is the last one recorded", last, s.planned_steps)
                                : fmt::format("this run has {} steps", last);
}

[[noreturn]] void refuse_step(const Selection& s, std::int64_t step) {
  const std::int64_t every = s.recording.every();
  throw Error("inspect " + s.title, fmt::format("no step {}; {}", step, how_far(s)),
              {{"recorded ", fmt::format("steps 0 to {}, every {}", s.recording.last_step(),
                                         every == 1 ? "step" : fmt::format("{} steps", every))}},
              step > s.recording.last_step()
                  ? (s.planned_steps > s.recording.last_step()
                         ? fmt::format("--step last, or finish it first: {} train --resume {}",
                                       program_name(), shell_word(s.title))
                         : std::string("--step last"))
                  : fmt::format("--step {}", step / every * every));
}

void choose_steps(Selection& s, const std::string& text) {
  s.first = 0;
  s.last = s.recording.last_step();
  if (s.whole_run) return;
  const std::size_t colon = text.find(':');
  if (text == "last") {
    s.first = s.last;
  } else if (colon == std::string::npos) {
    s.first = s.last = parse_step(s.title, text, text);
  } else {
    const std::string_view whole = text;
    s.first = parse_step(s.title, whole.substr(0, colon), whole);
    const std::string_view end = whole.substr(colon + 1);
    s.last = end == "last" ? s.recording.last_step() : parse_step(s.title, end, whole);
    if (s.last < s.first)
      throw ValueError("inspect " + s.title,
                       fmt::format("--step must name the smaller step first, got '{}'", text));
  }
  for (const std::int64_t step : {s.first, s.last})
    if (step > s.recording.last_step()) refuse_step(s, step);
  if (s.first == s.last && !s.recording.has_step(s.first)) refuse_step(s, s.first);
}

void inspect_file(const std::filesystem::path& path, const InspectOptions& options, std::ostream& out);

}  // namespace

Statistics statistics(const std::vector<double>& value, const std::vector<double>& start) {
  Statistics s;
  if (value.empty()) return s;
  const auto n = static_cast<double>(value.size());
  for (const double v : value) s.mean += v;
  s.mean /= n;
  for (const double v : value) s.std += (v - s.mean) * (v - s.mean);
  s.std = std::sqrt(s.std / n);
  s.min = *std::min_element(value.begin(), value.end());
  s.max = *std::max_element(value.begin(), value.end());
  double largest = -1;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const double distance = std::abs(value[i] - (start.empty() ? 0 : start[i]));
    if (distance > largest || std::isnan(distance)) {
      largest = distance;
      s.farthest = i;
      if (std::isnan(distance)) break;
    }
  }
  return s;
}

double agreement(double sum, double sum_of_absolute_values) {
  return sum_of_absolute_values > 0 ? std::abs(sum) / sum_of_absolute_values : 0;
}

std::string sparkline(const std::vector<double>& values, double top, std::size_t columns, bool ascii) {
  static constexpr const char* kBlocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                            "\u2585", "\u2586", "\u2587", "\u2588"};
  static constexpr const char* kLetters[] = {".", ":", "-", "=", "+", "*", "#", "@"};
  std::string line;
  columns = std::min(columns, values.size());
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t begin = c * values.size() / columns, end = (c + 1) * values.size() / columns;
    double mean = 0;
    for (std::size_t i = begin; i < end; ++i) mean += values[i] / static_cast<double>(end - begin);
    if (!std::isfinite(mean)) {
      line += '!';
      continue;
    }
    const double height = top > 0 ? mean / top * 8 : 0;
    const auto mark = static_cast<std::size_t>(std::clamp(height, 0.0, 7.0));
    line += ascii ? kLetters[mark] : kBlocks[mark];
  }
  return line;
}

void inspect(const std::filesystem::path& run_or_file, const InspectOptions& options, std::ostream& out) {
  const std::string title = run_or_file.string();
  if (!std::filesystem::exists(run_or_file))
    throw Error("inspect", fmt::format("'{}' does not exist", title), {},
                "a run folder or a safetensors file");
  if (std::filesystem::is_regular_file(run_or_file)) return inspect_file(run_or_file, options, out);
  if (!std::filesystem::exists(run_or_file / kRecordingFile))
    throw Error("inspect", fmt::format("'{}' holds no recorded parameters ({})", title, kRecordingFile), {},
                "train with /inspect/parameters in the config, such as [\"*norm*\"]");
  const Recording recording(run_or_file / kRecordingFile);
  if (recording.step_count() == 0)
    throw Error("inspect", fmt::format("'{}' has no recorded step yet", title), {}, "wait a moment");
  Selection selection{recording,
                      title,
                      "",
                      find(options.names, title, recording),
                      0,
                      0,
                      planned_steps(run_or_file),
                      options.steps.empty()};
  for (const std::string& name : options.names)
    selection.asked += (selection.asked.empty() ? "" : " ") + name;
  choose_steps(selection, options.steps);
  switch (options.format) {
    case InspectOptions::Format::csv:
      return write_csv(selection, out);
    case InspectOptions::Format::json:
      return write_json(selection, options.values, out);
    case InspectOptions::Format::table:
      return write_table(selection, options, out);
  }
}

namespace {

void inspect_file(const std::filesystem::path& path, const InspectOptions& options, std::ostream& out) {
  if (!options.steps.empty())
    throw ValueError("inspect", fmt::format("'{}' is a file with one state: it has no steps", path.string()),
                     {}, "leave --step out, or name a run folder");
  const nn::SafetensorsReader file(path);
  std::string lines;
  const auto wanted = [&](const std::string& name) {
    return options.names.empty() ||
           std::any_of(options.names.begin(), options.names.end(),
                       [&](const std::string& pattern) { return nn::matches(pattern, name); });
  };
  for (const auto& entry : file.entries()) {
    if (!wanted(entry.name)) continue;
    const Array array = file.read(entry);
    const std::vector<double> values = array.values();
    const Statistics s = statistics(values, {});
    lines += fmt::format("{:<44} {:<14} {:>12.6g} {:>12.6g} {:>12.6g} {:>12.6g}\n", entry.name,
                         array.shape().text(), s.mean, s.std, s.min, s.max);
    if (options.values) lines += "  " + array.text() + "\n";
  }
  if (lines.empty()) throw Error("inspect", fmt::format("'{}' has no tensor of that name", path.string()));
  out << fmt::format("{:<44} {:<14} {:>12} {:>12} {:>12} {:>12}\n", "name", "shape", "mean", "std", "min",
                     "max")
      << lines;
}

}  // namespace
}  // namespace handgrad::train
