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
/// Of a long run every `thinned`th step is there, those of `columns` in any case; counts are over all steps. Each step
/// comes once. Numbers that were not finite are null. `resumed` are the steps after which the run was interrupted and went
/// on, as timing.jsonl tells. Error soon after `stop` has become true.
nlohmann::ordered_json report_metrics(const std::filesystem::path& folder,
                                      const std::vector<std::int64_t>& columns,
                                      const std::atomic<bool>* stop = nullptr);

}  // namespace handgrad::view
