// Patterns for names of parameters, as `freeze`, `inspect` and configs take them.
#pragma once

#include <string_view>

namespace handgrad::nn {

/// Whether `name`, such as "trf_blocks.0.norm1.scale", is meant by `pattern`. In a pattern `*` stands for any
/// text, dots included, and `?` for one character. A pattern with neither is a name or the end of one:
/// "scale" and "norm1.scale" mean it, "ale" does not.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace handgrad::nn
