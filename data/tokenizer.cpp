#include "handgrad/data/tokenizer.h"

namespace handgrad::data {

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) text += token(id);
  return text;
}

}  // namespace handgrad::data
