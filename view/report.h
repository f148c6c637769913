// The report: what a run learned, as one self-contained HTML page.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/train/run.h"

namespace handgrad::view {

/// The file in a run folder.
inline constexpr const char* kReportFile = "report.html";

/// The data of a page of one run, or of two side by side: {"program", "version", "live", "runs"}.
nlohmann::ordered_json report_json(std::vector<nlohmann::ordered_json> runs, bool live);

/// The page around `data`. It works from disk, loads nothing else, and no text in `data` can become markup.
std::string report_page(const nlohmann::ordered_json& data);

/// Writes a page of one run, finished or not, or of two: gathers each run's data, with the model of its last checkpoint
/// where its config still builds one. Error when a folder holds no run, or when `out` is a file but not a report.
void write_report(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out);

/// Writes a page of `data`, the report_data of a run that was just trained, into the run's folder.
void write_run_report(const nlohmann::ordered_json& data, const std::filesystem::path& folder);

// ---- The data

/// How much is gathered, and what the folder does not say.
struct ReportOptions {
  /// The run that the folder's config describes, with its last weights: for the table of parameters and the row through
  /// the norms. Without it the page says `why_no_run`.
  const train::Run* run = nullptr;
  std::string why_no_run = {};       ///< one sentence
  bool running = false;              ///< whether training is running
  std::size_t budget = 1'700'000;    ///< bytes of recorded numbers, before they become text
  std::size_t row_budget = 180'000;  ///< bytes of rows through the norms, likewise
  /// Error soon after it becomes true: gathering for a page that is no longer needed stops.
  const std::atomic<bool>* stop = nullptr;
};

/// Everything that a page shows of the run in `folder`, finished or not: "name", "path", "state" (empty, running,
/// interrupted, non_finite, finished), "step", "steps" (0: not known), "norms", "metrics", "row", "texts",
/// "parameters", "config". Equal runs give equal data. Error when the folder holds no run or its recording is damaged.
nlohmann::ordered_json report_data(const std::filesystem::path& folder, const ReportOptions& options);

// ---- Its parts

/// Error if `stop` is given and true.
void check_not_stopped(const std::atomic<bool>* stop);

/// The steps that get a column, ascending: all, or every n-th when there are more than `most`. The first and the last
/// step always get one.
std::vector<std::int64_t> column_steps(const std::vector<std::int64_t>& steps, std::int64_t most);

/// The recorded vectors of the run in `folder`, as a page takes them:
///
///     {"columns": [0, 1, ...], "every": 1, "records": 301, "bytes": 4, "matrices": 0, "parameters": [
///       {"name", "owner", "kind", "size", "start": 1 or null, "features": [16, ...], "last", "agreement", "below", "half",
///        "range", "mean", "values", "gradients", "before" or "updates"}]}
///
/// `features` are ranked, those that moved farthest first; a vector of more than 192 features, or of more than fit into
/// `budget` bytes, has only the first and the last of them. Series are base64, a row of features for each column, in the
/// run's element type; `last` has all features. With neither "before" nor "updates" an update is the difference of two
/// columns. null when there is no recording, or no complete step in it. The recording is read once. Error soon after
/// `stop` becomes true.
nlohmann::ordered_json report_norms(const std::filesystem::path& folder, std::size_t budget,
                                    const std::atomic<bool>* stop = nullptr);

/// The metrics of the run in `folder`, as a page takes them:
///
///     {"last": 300, "steps": [1, ...], "loss", "lr", "grad_norm", "validation": [[50, 1.3], ...], "thinned": 1,
///      "clipped": 0, "clipped_steps": [...], "non_finite": 57 or null, "resumed": [137]}
///
/// A long run has every `thinned`th step, and always those of `columns`; counts are over all steps. Each step occurs once.
/// Numbers that were not finite are null. `resumed` lists the steps after which the run was interrupted and resumed, from
/// timing.jsonl. Error soon after `stop` becomes true.
nlohmann::ordered_json report_metrics(const std::filesystem::path& folder,
                                      const std::vector<std::int64_t>& columns,
                                      const std::atomic<bool>* stop = nullptr);

/// A line of the validation text (without one: of the training data) through the current model:
///
///     {"step": 300, "held_back": true, "text": true, "bytes": 4, "tokens": ["T", "h", ...], "norms": [
///       {"owner", "eps", "size", "first": 0, "statistics", "before", "normalized", "output",
///        "rows": 256, "below_eps": 0}]}
///
/// `statistics` are mean and variance of the input ("before"), normalized and output, six numbers (float64) for each token.
/// The rows, in the run's element type with `bytes` bytes a number, start with token `first` when not all of them fit
/// `budget` bytes. `below_eps` of `rows` rows of a batch had a variance below eps. null when the model has no
/// LayerNorm.
nlohmann::ordered_json report_row(const train::Run& run, std::size_t budget);

/// The parts of the page, from view/report; made at build time by cmake/report.cmake.
namespace report_parts {
extern const char* const kPage;    ///< page.html, with places for the others
extern const char* const kStyle;   ///< page.css
extern const char* const kScript;  ///< the scripts, one after another
}  // namespace report_parts

}  // namespace handgrad::view
