// inspect of a safetensors file: one state, and no steps.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "handgrad/core/error.h"
#include "handgrad/nn/pattern.h"
#include "handgrad/nn/safetensors.h"
#include "handgrad/train/inspect.h"
#include "handgrad/train/program_name.h"
#include "handgrad/train/text.h"

namespace handgrad::train {
namespace {

using Entries = std::vector<const nn::SafetensorsReader::Entry*>;

void refuse_what_runs_have(const std::filesystem::path& path, const InspectOptions& options) {
  const auto refuse = [&](const char* what, const char* option) {
    throw ValueError("inspect", fmt::format("'{}' is a file with one state: {}", path.string(), what), {},
                     fmt::format("leave {} out, or name a run folder", option));
  };
  if (!options.steps.empty()) refuse("it has no steps", "--step");
  if (options.of != Quantity::value) refuse("--of belongs to a run", "--of");
}

Entries chosen(const nn::SafetensorsReader& file, const std::vector<std::string>& names) {
  Entries entries;
  for (const auto& entry : file.entries())
    if (names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& pattern) {
          return nn::matches(pattern, entry.name);
        }))
      entries.push_back(&entry);
  return entries;
}

void write_table(const nn::SafetensorsReader& file, const Entries& entries, bool values, std::ostream& out) {
  out << fmt::format("{:<44} {:<14} {:>12} {:>12} {:>12} {:>12}\n", "name", "shape", "mean", "std", "min",
                     "max");
  for (const auto* entry : entries) {
    const Array array = file.read(*entry);
    const Statistics s = statistics(array.values(), {});
    out << fmt::format("{:<44} {:<14} {:>12.6g} {:>12.6g} {:>12.6g} {:>12.6g}\n", entry->name,
                       array.shape().text(), s.mean, s.std, s.min, s.max);
    if (values) out << "  " << array.text() << "\n";
  }
}

}  // namespace

void inspect_file(const std::filesystem::path& path, const InspectOptions& options, std::ostream& out) {
  if (path.filename() == kRecordingFile || path.filename() == kStatisticsFile)
    throw Error("inspect", fmt::format("'{}' is a part of a run", path.string()), {},
                fmt::format("{} inspect {}", program_name(),
                            shell_word(path.has_parent_path() ? path.parent_path().string() : ".")));
  if (path.extension() == ".json")
    throw Error(
        "inspect", fmt::format("'{}' is no safetensors file", path.string()), {},
        fmt::format("a run's folder, a checkpoint's, or a safetensors file; a config: {} config show {}",
                    program_name(), shell_word(path.string())));
  refuse_what_runs_have(path, options);
  const nn::SafetensorsReader file(path);
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

}  // namespace handgrad::train
