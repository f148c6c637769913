// One row of the model in a report: the input of each LayerNorm, normalized, and the output.
#pragma once

#include <cstddef>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/train/run.h"

namespace handgrad::view {

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

}  // namespace handgrad::view
