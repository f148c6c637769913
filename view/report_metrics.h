// What a report shows of metrics.jsonl: loss, learning rate, size of the gradient, clipping, interruptions.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace handgrad::view {

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

}  // namespace handgrad::view
