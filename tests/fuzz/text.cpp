// Any bytes as a text to learn from: it is not UTF-8, or it comes back as it was.
#include <cstddef>
#include <cstdint>
#include <string>

#include "handgrad/core/error.h"
#include "handgrad/data/char_tokenizer.h"
#include "handgrad/data/token_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace handgrad;
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  try {
    const auto tokenizer = data::CharTokenizer::from_text(text);
    auto ids = tokenizer.encode(text);
    if (tokenizer.decode(ids) != text) __builtin_trap();
    const data::Split parts = data::split(data::TokenStream(std::move(ids), "fuzz"), 0.1, 4);
    if (parts.training.size() + parts.validation.size() > static_cast<std::int64_t>(size)) __builtin_trap();
  } catch (const Error& error) {
    if (std::string(error.what()).empty()) __builtin_trap();
  }
  return 0;
}
