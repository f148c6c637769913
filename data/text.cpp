#include "handgrad/data/text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "handgrad/core/error.h"
#include "handgrad/data/char_tokenizer.h"
#include "handgrad/io/files.h"

namespace handgrad::data {

Text load_text(const TextOptions& options) {
  const io::TextFile file = io::read_text_file(options.path);
  Text text;
  text.had_byte_order_mark = file.had_byte_order_mark;
  text.tokenizer = options.tokenizer;
  std::vector<std::int32_t> ids;
  try {
    if (!text.tokenizer)
      text.tokenizer = std::make_shared<CharTokenizer>(CharTokenizer::from_text(file.text));
    ids = text.tokenizer->encode(file.text);
  } catch (const Error& error) {  // the file is to blame, so it stands in front
    throw Error(io::quoted(options.path), error.op() + ": " + error.message(), error.operands(),
                error.advice());
  }
  Split parts = split(TokenStream(std::move(ids), io::quoted(options.path)), options.val_fraction,
                      options.context_length);
  text.training = std::move(parts.training);
  text.validation = std::move(parts.validation);
  return text;
}

std::unique_ptr<Tokenizer> tokenizer_from_json(const nlohmann::json& json) {
  const auto type = json.is_object() ? json.find("type") : json.end();
  if (type == json.end()) throw Error("tokenizer", "must be an object with a key \"type\"");
  if (*type == "char") return std::make_unique<CharTokenizer>(CharTokenizer::from_json(json));
  throw Error("tokenizer", fmt::format("/type: unknown tokenizer {} (known: char)", type->dump()));
}

}  // namespace handgrad::data
