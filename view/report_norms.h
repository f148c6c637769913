// What a report shows of recorded vectors, scale and shift above all: their way, and why they went it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace handgrad::view {

/// Error when there is a `stop` and it is true.
void check_not_stopped(const std::atomic<bool>* stop);

/// The steps that get a column, ascending: all, or every n-th when there are more than `most`; always the first and the last.
std::vector<std::int64_t> column_steps(const std::vector<std::int64_t>& steps, std::int64_t most);

/// The recorded vectors of the run in `folder`, as a page takes them:
///
///     {"columns": [0, 1, ...], "every": 1, "records": 301, "bytes": 4, "matrices": 0, "parameters": [
///       {"name", "owner", "kind", "size", "start": 1 or null, "features": [16, ...], "last", "agreement", "below", "half",
///        "range", "mean", "values", "gradients", "before" or "updates"}]}
///
/// `features` are ranked, those that moved farthest first; a vector of more than 192 features, or of more than fit into
/// `budget` bytes, has only the first and the last of them. Series are base64, a row of features for each column, in the
/// run's element type. `last`, by contrast, has all features. With neither "before" nor "updates" an update is the difference of two columns. null when
/// there is no recording, or no complete step in it. The recording is read once from end to end; Error soon after `stop`
/// has become true.
nlohmann::ordered_json report_norms(const std::filesystem::path& folder, std::size_t budget,
                                    const std::atomic<bool>* stop = nullptr);

}  // namespace handgrad::view
