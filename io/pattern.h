// Patterns for names of parameters, as `freeze`, `inspect` and configs take them.
#pragma once

#include <string_view>

namespace handgrad::io {

/// Whether `name`, such as "trf_blocks.0.norm1.scale", is meant by `pattern`. In a pattern `*` stands for any
/// text, dots included, and `?` for one character. A pattern with neither is a name or whole parts of one: "scale",
/// "norm1" and "trf_blocks.0" mean it, "ale" does not.
bool matches(std::string_view pattern, std::string_view name);

/// Whether `name` is `end`, or ends with it after a dot: "norm1" is an end of "trf_blocks.0.norm1".
bool is_end_of(std::string_view end, std::string_view name);

}  // namespace handgrad::io
