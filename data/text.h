// A text file as token ids, and the tokenizers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "handgrad/data/token_stream.h"
#include "handgrad/data/tokenizer.h"

namespace handgrad::data {

/// What a config says about a text.
struct TextOptions {
  std::filesystem::path path;       ///< of a UTF-8 file
  double val_fraction = 0.1;        ///< which part of the tokens, at the end, is held back
  std::int64_t context_length = 0;  ///< of the model: both parts must hold one row; 0: not known yet
  std::shared_ptr<const Tokenizer> tokenizer = {};  ///< null: a CharTokenizer of this text
};

/// A text that was read, in tokens.
struct Text {
  std::shared_ptr<const Tokenizer> tokenizer;  ///< the one that was given, or the new one
  TokenStream training;                        ///< the beginning of the text
  TokenStream validation;                      ///< the end of the text; empty when val_fraction is 0
  bool had_byte_order_mark = false;            ///< it was dropped; worth a note
};

/// Reads, encodes and splits. The characters of a new CharTokenizer are those of the whole text, the
/// held-back part included. Errors of reading, encoding and splitting, each with the path.
Text load_text(const TextOptions& options);

/// The tokenizer that `to_json` wrote. Error that names the missing or wrong key.
std::unique_ptr<Tokenizer> tokenizer_from_json(const nlohmann::json& json);

}  // namespace handgrad::data
