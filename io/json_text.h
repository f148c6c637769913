// Strict JSON from text, and what is wrong with a config and where.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/core/error.h"

namespace handgrad::io {

/// A config that cannot be used: an unknown key, a wrong type, a value out of range, text that is not JSON.
/// One line:
///
///     configs/toy.json: /model/n_heads: must divide emb_dim = 100, got 12
class ConfigError : public Error {
 public:
  /// `file`: where the value was written: a file, or "--set train.steps=ten"; empty: a config without a file.
  /// `pointer`: JSON pointer of the value; empty when it is about the text as a whole. `rule`: what was
  /// broken and what came instead.
  ConfigError(std::string file, std::string pointer, std::string rule)
      : Error(file.empty() ? "config" : file, pointer.empty() ? rule : pointer + ": " + rule),
        file_(std::move(file)),
        pointer_(std::move(pointer)),
        rule_(std::move(rule)) {}

  /// @{ As they were given to the constructor.
  const std::string& file() const { return file_; }
  const std::string& pointer() const { return pointer_; }
  const std::string& rule() const { return rule_; }
  /// @}

 private:
  std::string file_, pointer_, rule_;
};

/// JSON as configs are written: comments (`//` and `/* */`) are allowed, a byte-order mark at the beginning
/// is dropped. ConfigError for anything else that JSON is not: NaN, numbers beyond the largest double
/// (1e400), trailing commas, invalid UTF-8, text after the end, and a duplicate key.
/// `file` is the name in messages:
///
///     configs/toy.json: line 3, column 17: unexpected ','; expected '[', '{', or a literal
///     configs/toy.json: /train/steps: duplicate key
nlohmann::json parse_json(std::string_view text, const std::string& file);

/// A message of the JSON library without the id of the error in front of it, "[json.exception.parse_error.101] ".
std::string without_id(std::string_view message);

/// A key as JSON pointers write it: ~ becomes ~0, and / becomes ~1.
std::string pointer_token(std::string_view key);

}  // namespace handgrad::io
