// handgrad layers: what a config may name as "type", the program's own and those that were registered.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/cli/terminal.h"
#include "handgrad/cli/verb.h"
#include "handgrad/core/error.h"
#include "handgrad/io/near_match.h"
#include "handgrad/view/config_keys.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<io::Key> plain_keys(const view::ConfigObject::Type& type) {
  std::vector<io::Key> keys;
  for (const io::Key& key : type.keys)
    if (key.type != io::Key::Type::object) keys.push_back(key);
  return keys;
}

/// The objects with types to choose from, of them only those in `names`: a type, or what the types are.
std::vector<view::ConfigObject> chosen_objects(const std::vector<std::string>& names) {
  std::vector<view::ConfigObject> chosen;
  std::vector<std::string> known;
  for (view::ConfigObject& object : view::config_objects()) {
    if (object.types.empty()) continue;
    known.push_back(object.what);
    for (const view::ConfigObject::Type& type : object.types) known.push_back(type.name);
    const auto meant = [&](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (!names.empty() && !meant(object.what))
      std::erase_if(object.types, [&](const view::ConfigObject::Type& type) { return !meant(type.name); });
    if (!object.types.empty()) chosen.push_back(std::move(object));
  }
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::sort(known.begin(), known.end());
      known.erase(std::unique(known.begin(), known.end()), known.end());
      throw ValueError("layers",
                       fmt::format("nothing is called \"{}\"{}", name, io::did_you_mean(name, known)));
    }
  return chosen;
}

constexpr std::size_t kLeast = 40;  // columns for what a key may be; with less it gets separate lines

std::string type_text(const view::ConfigObject::Type& type) {
  const std::string name = type.name + (type.is_default ? " (default)" : "");
  std::string text =
      fmt::format("\n  {:<30}{}\n", name,
                  view::wrapped(type.doc, std::max<std::size_t>(32, name.size() + 2), text_columns()));
  std::size_t width = 0, default_width = 0;
  const std::vector<io::Key> keys = plain_keys(type);
  const auto default_of = [](const io::Key& key) {
    return !key.fallback.empty() ? key.fallback : key.required ? std::string("(needed)") : std::string("-");
  };
  for (const io::Key& key : keys) {
    width = std::max(width, view::last_name(key.pointer).size());
    default_width = std::max(default_width, default_of(key).size());
  }
  const std::size_t beside = 4 + width + 2 + default_width + 2;
  const bool fits = beside + kLeast <= text_columns();
  for (const io::Key& key : keys)
    text +=
        fmt::format("    {:<{}}  {:<{}}{}{}\n", view::last_name(key.pointer), width, default_of(key),
                    fits ? default_width : 0, fits ? "  " : "\n        ",
                    view::wrapped(view::value_text(key) + ": " + key.doc, fits ? beside : 8, text_columns()));
  return text;
}

Json to_json(const std::vector<view::ConfigObject>& objects) {
  Json list = Json::array();
  for (const view::ConfigObject& object : objects) {
    Json types = Json::array();
    for (const view::ConfigObject::Type& type : object.types) {
      Json keys = Json::array();
      for (const io::Key& key : plain_keys(type))
        keys.push_back({{"key", io::dotted(key.pointer)},
                        {"value", view::value_text(key)},
                        {"default", key.fallback.empty() ? Json() : Json::parse(key.fallback)},
                        {"required", key.required},
                        {"doc", key.doc}});
      types.push_back({{"type", type.name}, {"doc", type.doc}, {"usual", type.is_default}, {"keys", keys}});
    }
    list.push_back(
        {{"what", object.what}, {"chosen_by", io::dotted(object.pointer + "/type")}, {"kinds", types}});
  }
  return list;
}

int print_layers(const std::vector<std::string>& names, bool json) {
  const std::vector<view::ConfigObject> objects = chosen_objects(names);
  if (json) {
    fmt::print("{}\n", to_json(objects).dump(1));
    return 0;
  }
  bool first = true;
  for (const view::ConfigObject& object : objects) {
    fmt::print("{}{}, chosen by {}\n", first ? "" : "\n", object.what, io::dotted(object.pointer + "/type"));
    for (const view::ConfigObject::Type& type : object.types) fmt::print("{}", type_text(type));
    first = false;
  }
  return 0;
}

}  // namespace

Verb layers_verb() {
  struct LayersRequest {
    std::vector<std::string> names;
    bool json = false;
  };
  auto request = std::make_shared<LayersRequest>();
  return {.name = "layers",
          .purpose = "models, norms, optimizers, ... that a config may name, and their keys",
          .group = Group::look,
          .options = {{"names", "NAME", "only these: norm, rms_norm, ...", &request->names},
                      {"--json", "", "as JSON", &request->json}},
          .run = [request] { return print_layers(request->names, request->json); }};
}

}  // namespace handgrad::cli
