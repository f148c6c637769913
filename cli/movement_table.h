// The tables of a training run: how far scale and shift have moved, in as many columns as there are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "handgrad/cli/movement.h"

namespace handgrad::cli {

/// The columns: every module's parameters; with many modules the farthest one of each kind; on a narrow
/// terminal only its distance.
enum class Layout { modules, farthest, narrow };
Layout layout_for(const Movement& movement, std::size_t columns);

/// The two lines above the rows.
std::string rows_heading(const Movement& movement, Layout layout);
/// One row: the step, the losses where they are known, the distances.
std::string row_text(const Movement& movement, Layout layout, std::int64_t step, std::optional<double> loss,
                     std::optional<double> validation_loss);

/// Mean, extremes and the farthest feature of every parameter, as they are now.
std::string final_table(const Movement& movement, std::int64_t step, Layout layout);

}  // namespace handgrad::cli
