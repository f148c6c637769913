#include "handgrad/train/shown_keys.h"

#include <nlohmann/json.hpp>

#include "handgrad/train/config_keys.h"
#include "handgrad/train/run.h"

namespace handgrad::train {
namespace {

std::string origin_text(const nn::Key& key, const std::string& file) {
  if (key.origin == file) return "file";
  return key.origin.empty() ? "default" : "command line";
}

}  // namespace

std::vector<ShownKey> shown_keys(const ConfigDocument& document) {
  nn::Fields fields = document.fields(nn::Purpose::check);
  read_config(fields);
  std::vector<ShownKey> shown;
  const auto section = [](const std::string& pointer) { return pointer.substr(0, pointer.find('/', 1)); };
  std::vector<std::string> sections{""};
  for (const nn::Key& key : fields.keys())
    if (key.type == nn::Key::Type::object && section(key.pointer) == key.pointer)
      sections.push_back(key.pointer);
  for (const std::string& wanted : sections) {
    for (const nn::Key& key : fields.keys()) {
      if (key.type == nn::Key::Type::object) continue;
      const bool on_top = key.pointer.find('/', 1) == std::string::npos;
      if (on_top != wanted.empty() || (!on_top && section(key.pointer) != wanted)) continue;
      shown.push_back(
          {dotted(key.pointer), key.value, key.value.empty() ? "" : origin_text(key, fields.file())});
    }
  }
  return shown;
}

}  // namespace handgrad::train
