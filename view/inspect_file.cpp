// inspect of a safetensors file: one state, and no steps.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "handgrad/core/error.h"
#include "handgrad/io/pattern.h"
#include "handgrad/io/program_name.h"
#include "handgrad/io/safetensors.h"
#include "handgrad/view/inspect.h"
#include "handgrad/view/table.h"
#include "handgrad/view/text.h"

namespace handgrad::view {
namespace {

using Entries = std::vector<const io::SafetensorsReader::TensorEntry*>;

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

}  // namespace

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

}  // namespace handgrad::view
