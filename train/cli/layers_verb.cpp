// handgrad layers: what a config may name as "type", the program's own and those that were registered.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/nn/near_match.h"
#include "handgrad/train/cli/terminal.h"
#include "handgrad/train/cli/verbs.h"
#include "handgrad/train/config_keys.h"
#include "handgrad/train/text.h"

namespace handgrad::train::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<nn::Key> plain_keys(const ConfigObject::Kind& kind) {
  std::vector<nn::Key> keys;
  for (const nn::Key& key : kind.keys)
    if (key.type != nn::Key::Type::object) keys.push_back(key);
  return keys;
}

/// The objects that have kinds, with only those that one of `names` means: a kind, or what the kinds are.
std::vector<ConfigObject> chosen_objects(const std::vector<std::string>& names) {
  std::vector<ConfigObject> chosen;
  std::vector<std::string> known;
  for (ConfigObject& object : config_objects()) {
    if (object.kinds.empty()) continue;
    known.push_back(object.what);
    for (const ConfigObject::Kind& kind : object.kinds) known.push_back(kind.type);
    const auto meant = [&](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (!names.empty() && !meant(object.what))
      std::erase_if(object.kinds, [&](const ConfigObject::Kind& kind) { return !meant(kind.type); });
    if (!object.kinds.empty()) chosen.push_back(std::move(object));
  }
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::sort(known.begin(), known.end());
      known.erase(std::unique(known.begin(), known.end()), known.end());
      throw ValueError("layers",
                       fmt::format("nothing is called \"{}\"{}", name, nn::did_you_mean(name, known)));
    }
  return chosen;
}

constexpr std::size_t kLeast = 40;  // columns for what a key may be; with less it gets lines of its own

std::string kind_text(const ConfigObject::Kind& kind) {
  const std::string name = kind.type + (kind.usual ? " (the usual one)" : "");
  std::string text = fmt::format(
      "\n  {:<30}{}\n", name, wrapped(kind.doc, std::max<std::size_t>(32, name.size() + 2), text_columns()));
  std::size_t width = 0, default_width = 0;
  const std::vector<nn::Key> keys = plain_keys(kind);
  const auto default_of = [](const nn::Key& key) {
    return !key.fallback.empty() ? key.fallback : key.required ? std::string("(needed)") : std::string("-");
  };
  for (const nn::Key& key : keys) {
    width = std::max(width, last_name(key.pointer).size());
    default_width = std::max(default_width, default_of(key).size());
  }
  for (const nn::Key& key : keys) {
    std::size_t indent = 4 + width + 2 + default_width + 2;
    std::string gap = "  ";
    if (indent + kLeast > text_columns()) {
      indent = 8;
      gap = "\n" + std::string(indent, ' ');
    }
    text += fmt::format("    {:<{}}  {:<{}}{}{}\n", last_name(key.pointer), width, default_of(key),
                        gap == "  " ? default_width : 0, gap,
                        wrapped(value_text(key) + ": " + key.doc, indent, text_columns()));
  }
  return text;
}

Json to_json(const std::vector<ConfigObject>& objects) {
  Json list = Json::array();
  for (const ConfigObject& object : objects) {
    Json kinds = Json::array();
    for (const ConfigObject::Kind& kind : object.kinds) {
      Json keys = Json::array();
      for (const nn::Key& key : plain_keys(kind))
        keys.push_back({{"key", dotted(key.pointer)},
                        {"value", value_text(key)},
                        {"default", key.fallback.empty() ? Json() : Json::parse(key.fallback)},
                        {"required", key.required},
                        {"doc", key.doc}});
      kinds.push_back({{"type", kind.type}, {"doc", kind.doc}, {"usual", kind.usual}, {"keys", keys}});
    }
    list.push_back(
        {{"what", object.what}, {"chosen_by", dotted(object.pointer + "/type")}, {"kinds", kinds}});
  }
  return list;
}

int print_layers(const std::vector<std::string>& names, bool json) {
  const std::vector<ConfigObject> objects = chosen_objects(names);
  if (json) {
    fmt::print("{}\n", to_json(objects).dump(1));
    return 0;
  }
  bool first = true;
  for (const ConfigObject& object : objects) {
    fmt::print("{}{}, chosen by {}\n", first ? "" : "\n", object.what, dotted(object.pointer + "/type"));
    for (const ConfigObject::Kind& kind : object.kinds) fmt::print("{}", kind_text(kind));
    first = false;
  }
  return 0;
}

}  // namespace

void add_layers(CLI::App& app, Chosen& chosen) {
  auto names = std::make_shared<std::vector<std::string>>();
  auto json = std::make_shared<bool>(false);
  CLI::App* verb =
      app.add_subcommand("layers", "models, norms, optimisers, ... that a config may name, and their keys")
          ->group("look");
  verb->add_option("names", *names, "only these: norm, rms_norm, ...")->option_text("NAME");
  verb->add_flag("--json", *json, "as JSON");
  verb->callback(
      [names, json, &chosen] { chosen.action = [names, json] { return print_layers(*names, *json); }; });
}

}  // namespace handgrad::train::cli
