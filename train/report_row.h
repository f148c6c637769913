// What a report shows of one real row: what each LayerNorm was given, the row normalized, and its output.
#pragma once

#include <cstddef>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/train/run.h"

namespace handgrad::train {

/// A line of the text held back (or of the training data, when nothing is) through the model as it stands:
///
///     {"step": 300, "held_back": true, "text": true, "bytes": 4, "tokens": ["T", "h", ...], "norms": [
///       {"owner", "eps", "size", "first": 0, "statistics", "before", "normalized", "output",
///        "rows": 256, "below_eps": 0}]}
///
/// `statistics` are mean and variance of before, normalized and output, six numbers (float64) for each token; the rows
/// themselves, in the run's element type with `bytes` bytes a number, begin with token `first` where all of them would
/// not fit `budget` bytes. `below_eps` of `rows` rows of a batch had a variance below eps. null when the model has no
/// LayerNorm.
nlohmann::ordered_json report_row(const Run& run, std::size_t budget);

}  // namespace handgrad::train
