#include "handgrad/view/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <ostream>

#include "handgrad/core/error.h"
#include "handgrad/io/pattern.h"
#include "handgrad/io/program_name.h"
#include "handgrad/io/safetensors.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/run_folder.h"
#include "handgrad/view/table.h"
#include "handgrad/view/text.h"

namespace handgrad::view {

double agreement(double sum, double sum_of_absolute_values) {
  return sum_of_absolute_values > 0 ? std::abs(sum) / sum_of_absolute_values : 0;
}

Trajectory::Trajectory(std::vector<double> first, std::vector<double> final)
    : start(std::move(first)),
      last(std::move(final)),
      sum(start.size()),
      absolute_sum(start.size()),
      negative(start.size()),
      half_way(start.size(), -1) {}

void Trajectory::add(std::int64_t step, const std::vector<double>& value,
                     const std::vector<double>& gradient) {
  for (std::size_t i = 0; i < start.size(); ++i) {
    if (half_way[i] < 0 && std::abs(value[i] - start[i]) >= std::abs(last[i] - start[i]) / 2)
      half_way[i] = step;
    if (gradient.empty()) continue;
    sum[i] += gradient[i];
    absolute_sum[i] += std::abs(gradient[i]);
    if (gradient[i] < 0) negative[i] += 1;
  }
  if (!gradient.empty()) ++gradients;
}

std::vector<std::size_t> Trajectory::ranking() const {
  std::vector<std::size_t> ranked(start.size());
  std::iota(ranked.begin(), ranked.end(), std::size_t{0});
  const auto distance = [&](std::size_t i) {
    const double d = std::abs(last[i] - start[i]);
    return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
  };
  std::stable_sort(ranked.begin(), ranked.end(), [&](auto a, auto b) { return distance(a) > distance(b); });
  return ranked;
}

std::optional<double> common_start(const std::vector<double>& start) {
  const bool common = std::all_of(start.begin(), start.end(), [&](double v) { return v == start.front(); });
  return common && !start.empty() ? std::optional(start.front()) : std::nullopt;
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

// ---- A safetensors file: one state, and no steps

namespace {

using Entries = std::vector<const io::TensorEntry*>;

void throw_what_runs_have(const std::filesystem::path& path, const InspectOptions& options) {
  const auto throw_error = [&](const char* what, const char* option) {
    throw ValueError("inspect", fmt::format("'{}' is a file with one state: {}", path.string(), what), {},
                     fmt::format("leave {} out, or name a run folder", option));
  };
  if (!options.steps.empty()) throw_error("it has no steps", "`step`");
  if (options.of != train::Quantity::value) throw_error("`of` belongs to a run", "`of`");
}

Entries chosen(const io::SafetensorsReader& file, const std::vector<std::string>& names) {
  Entries entries;
  for (const auto& entry : file.entries())
    if (names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& pattern) {
          return io::matches(pattern, entry.name);
        }))
      entries.push_back(&entry);
  return entries;
}

void write_table(const io::SafetensorsReader& file, const Entries& entries, bool values, std::ostream& out) {
  Table table({{"name", Align::left, 44, 2, 44},
               {"shape", Align::left, 14, 1, 14},
               {"mean", Align::right, 12, 1},
               {"std", Align::right, 12, 1},
               {"min", Align::right, 12, 1},
               {"max", Align::right, 12, 1}});
  for (const auto* entry : entries) {
    const Array array = file.read(*entry);
    const train::Statistics s = train::statistics(array.values(), {});
    std::vector<std::string> cells{entry->name, array.shape().text()};
    for (const double number : {s.mean, s.std, s.min, s.max}) cells.push_back(fmt::format("{:.6g}", number));
    table.add(std::move(cells));
    if (values) table.add({"  " + array.text()});
  }
  out << table.text();
}

void inspect_file(const std::filesystem::path& path, const InspectOptions& options, std::ostream& out) {
  if (path.filename() == train::kRecordingFile)
    throw Error("inspect", fmt::format("'{}' is a part of a run", path.string()), {},
                fmt::format("`handgrad` inspect {}",
                            io::shell_word(path.has_parent_path() ? path.parent_path().string() : ".")));
  if (path.extension() == ".json")
    throw Error(
        "inspect", fmt::format("'{}' is not a safetensors file", path.string()), {},
        fmt::format(
            "a run's folder, a checkpoint's, or a safetensors file; a config: `handgrad` config show {}",
            io::shell_word(path.string())));
  throw_what_runs_have(path, options);
  const io::SafetensorsReader file(path);
  const Entries entries = chosen(file, options.names);
  if (entries.empty()) throw Error("inspect", fmt::format("'{}' has no tensor of that name", path.string()));
  for (const auto* entry : entries)  // nothing is written before it is known that all of them can be read
    if (entry->dtype.find('F') == std::string::npos) file.read(*entry);
  switch (options.format) {
    case InspectOptions::Format::csv:
      out << "name,index,value\n";
      for (const auto* entry : entries) write_csv(entry->name, file.read(*entry), out);
      return;
    case InspectOptions::Format::json:
      for (const auto* entry : entries) {
        out << (entry == entries.front() ? "[" : ",\n ");
        write_json(entry->name, file.read(*entry), options.values, out);
      }
      out << "]\n";
      return;
    case InspectOptions::Format::table:
      return write_table(file, entries, options.values, out);
  }
}

}  // namespace

// ---- A run or a file

void inspect(const std::filesystem::path& run_or_file, const InspectOptions& options, std::ostream& out) {
  const std::string title = run_or_file.string();
  if (!std::filesystem::exists(run_or_file))
    throw Error("inspect", fmt::format("'{}' does not exist", title), {},
                "a run folder or a safetensors file");
  if (std::filesystem::is_regular_file(run_or_file)) return inspect_file(run_or_file, options, out);
  if (!std::filesystem::exists(run_or_file / "config.json") && run_or_file.filename() == "checkpoints")
    throw Error("inspect", fmt::format("'{}' holds checkpoints", title), {},
                fmt::format("one of them, or the run: `handgrad` inspect {}",
                            io::shell_word(run_or_file.parent_path().string())));
  train::reject_older_run(run_or_file);
  const bool is_run = std::filesystem::exists(run_or_file / train::kRecordingFile) ||
                      std::filesystem::exists(run_or_file / "checkpoints");
  if (!is_run &&
      std::filesystem::exists(run_or_file / train::kModelFile))  // a checkpoint's folder, or another's
    return inspect_file(run_or_file / train::kModelFile, options, out);
  const train::History history(run_or_file, options.of, !options.names.empty());
  if (history.recording() == nullptr && history.checkpoint_steps().empty())
    throw Error("inspect",
                fmt::format("'{}' holds no recorded parameters ({})", title, train::kRecordingFile), {},
                "train with /inspect/parameters in the config, such as [\"*norm*\"]");
  if (history.recording() != nullptr && history.recording()->last_step() < 0)
    throw Error("inspect", fmt::format("'{}' has no recorded step yet", title), {}, "wait a moment");
  const Selection selection = select(run_or_file, history, options);
  switch (options.format) {
    case InspectOptions::Format::csv:
      return write_csv(selection, out);
    case InspectOptions::Format::json:
      return write_json(selection, options.values, out);
    case InspectOptions::Format::table:
      return write_table(selection, options, out);
  }
}

}  // namespace handgrad::view
