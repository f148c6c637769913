#include "handgrad/data/tokenizer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/data/char_tokenizer.h"

namespace handgrad::data {

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) text += token(id);
  return text;
}

std::unique_ptr<Tokenizer> tokenizer_from_json(const nlohmann::json& json) {
  const auto type = json.is_object() ? json.find("type") : json.end();
  if (type == json.end()) throw Error("tokenizer", "must be an object with a key \"type\"");
  if (*type == "char") return std::make_unique<CharTokenizer>(CharTokenizer::from_json(json));
  throw Error("tokenizer", fmt::format("/type: unknown tokenizer {} (known: char)", type->dump()));
}

}  // namespace handgrad::data
