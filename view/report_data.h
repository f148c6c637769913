// What a report shows of one run, gathered from the run's folder.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/train/run.h"

namespace handgrad::view {

/// How much is gathered, and what is known beside the folder.
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
/// interrupted, non_finite, finished), "step", "steps" (0: not known), "norms" (report_norms.h), "metrics"
/// (report_metrics.h), "row" (report_row.h), "texts", "parameters", "config". Equal runs give equal data. Error when the
/// folder holds no run or its recording is damaged.
nlohmann::ordered_json report_data(const std::filesystem::path& folder, const ReportOptions& options);

}  // namespace handgrad::view
