// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace handgrad::data {

/// A fixed list of tokens, each a short string of bytes, and a rule that cuts a text into them. Not changed
/// after its construction, so threads may share one.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The ids of `text`, every byte of it, a byte-order mark too. Error where the tokenizer has no token for a
  /// byte.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// The bytes of one token. Error unless 0 <= id < vocab_size(). A token may be a part of a UTF-8 character.
  virtual std::string_view token(std::int32_t id) const = 0;
  /// How many tokens there are.
  virtual std::int64_t vocab_size() const = 0;
  /// The name under which configs and checkpoints know this kind of tokenizer: "char".
  virtual std::string_view type() const = 0;
  /// All that `tokenizer_from_json` needs, with the key "type".
  virtual nlohmann::json to_json() const = 0;

  /// The tokens of `ids`, joined.
  std::string decode(std::span<const std::int32_t> ids) const {
    std::string text;
    for (const std::int32_t id : ids) text += token(id);
    return text;
  }
};

}  // namespace handgrad::data
