// Strict JSON from text.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/io/config_error.h"

namespace handgrad::io {

/// JSON as configs are written: comments (`//` and `/* */`) are allowed, a byte-order mark at the beginning
/// is dropped. ConfigError for anything else that JSON is not: NaN, numbers beyond the largest double
/// (1e400), trailing commas, invalid UTF-8, text after the end, and a key that comes twice in one object.
/// `file` is the name in messages:
///
///     configs/toy.json: line 3, column 17: unexpected ','; expected '[', '{', or a literal
///     configs/toy.json: /train/steps: key comes twice
nlohmann::json parse_json(std::string_view text, const std::string& file);

/// A key as it stands in a JSON pointer: ~ is written ~0, and / is written ~1.
std::string pointer_token(std::string_view key);

}  // namespace handgrad::io
