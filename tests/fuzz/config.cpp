// Any bytes as a config: it is read, or rejected with one message.
#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/io/fields.h"
#include "handgrad/io/json_text.h"
#include "handgrad/train/run.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace handgrad;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    io::Fields fields(io::parse_json(text, "fuzz.json"), {"fuzz.json"}, io::Purpose::check);
    train::read_config(fields);
  } catch (const Error& error) {
    if (std::string(error.what()).empty()) __builtin_trap();
  }
  return 0;
}
