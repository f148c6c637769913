// One token for each different character.
#pragma once

#include <array>

#include "handgrad/data/tokenizer.h"

namespace handgrad::data {

/// Tokens are Unicode code points; ids count them in the order of their numbers, from 0:
///
///     auto tokenizer = CharTokenizer::from_text("hello");   // e h l o
///     tokenizer.encode("hole");                             // 1 3 2 0
///
/// A character of several code points (e and a combining accent) is several tokens.
class CharTokenizer final : public Tokenizer {
 public:
  /// Every code point of `text` becomes a token. Error with the byte offset when `text` is not UTF-8, and
  /// when it is empty.
  static CharTokenizer from_text(std::string_view text);
  /// {"type": "char", "characters": "ehlo"}: the characters in the order of their ids.
  static CharTokenizer from_json(const nlohmann::json& json);

  /// Error for text that is not UTF-8 (with the byte offset) and for a character that is no token (with the
  /// character, its place in characters and bytes, and the size of the vocabulary).
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string_view token(std::int32_t id) const override;
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(characters_.size()); }
  std::string_view type() const override { return "char"; }
  nlohmann::json to_json() const override;

 private:
  explicit CharTokenizer(std::vector<char32_t> sorted);
  std::int32_t find(char32_t character) const;

  std::vector<char32_t> characters_;         // ascending; the index is the id
  std::vector<std::string> tokens_;          // the same in UTF-8
  std::array<std::int32_t, 128> ascii_ids_;  // -1: no token
};

}  // namespace handgrad::data
