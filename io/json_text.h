// Strict JSON from text.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/io/config_error.h"

namespace handgrad::io {

/// JSON as configs are written: comments (`//` and `/* */`) are allowed, a byte-order mark at the beginning
/// is dropped. ConfigError for anything else that JSON is not: NaN, numbers beyond the largest double
/// (1e400), trailing commas, invalid UTF-8, text after the end, and a duplicate key.
/// `file` is the name in messages:
///
///     configs/toy.json: line 3, column 17: unexpected ','; expected '[', '{', or a literal
///     configs/toy.json: /train/steps: duplicate key
nlohmann::json parse_json(std::string_view text, const std::string& file);

/// A key as JSON pointers write it: ~ becomes ~0, and / becomes ~1.
std::string pointer_token(std::string_view key);

}  // namespace handgrad::io
