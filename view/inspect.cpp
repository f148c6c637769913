#include "handgrad/view/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "handgrad/core/error.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/run_folder.h"
#include "handgrad/view/text.h"

namespace handgrad::view {
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
