// handgrad config show CONFIG, handgrad config schema, handgrad config reference
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/train/cli/verbs.h"
#include "handgrad/train/config_keys.h"
#include "handgrad/train/run.h"

namespace handgrad::train::cli {
namespace {

using Json = nlohmann::ordered_json;

/// A value that is in force, or why there is none.
struct ShownKey {
  std::string key, value, origin;
};

std::string origin_text(const nn::Key& key, const std::string& file) {
  if (key.origin == file) return "file";
  return key.origin.empty() ? "default" : "command line";
}

/// The keys of each section stay together, in the order in which the sections are read.
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

std::string table(const std::vector<ShownKey>& keys, const std::string& name) {
  std::size_t key_width = 3, value_width = 5;
  for (const ShownKey& key : keys) {
    key_width = std::max(key_width, key.key.size());
    value_width = std::max(value_width, std::min<std::size_t>(key.value.size(), 50));
  }
  std::string text =
      fmt::format("{}\n\n{:<{}}  {:<{}}  from\n", name, "key", key_width, "value", value_width);
  for (const ShownKey& key : keys) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", key.key, key_width, key.value.empty() ? "-" : key.value,
                        value_width, key.value.empty() ? "not given" : key.origin);
  }
  return text;
}

Json to_json(const std::vector<ShownKey>& keys) {
  Json list = Json::array();
  for (const ShownKey& key : keys)
    list.push_back({{"key", key.key},
                    {"value", key.value.empty() ? Json() : Json::parse(key.value)},
                    {"from", key.value.empty() ? "not given" : key.origin}});
  return list;
}

}  // namespace

void add_config(CLI::App& app, Chosen& chosen) {
  CLI::App* verb =
      app.add_subcommand("config", "what configs may say, and what one does say")->group("files");
  verb->require_subcommand(1);

  auto options = std::make_shared<ConfigOptions>();
  auto json = std::make_shared<bool>(false);
  CLI::App* show = verb->add_subcommand("show", "every key of a config: its value and where that came from");
  options->add_to(*show, true);
  show->add_flag("--json", *json, "as JSON");
  show->callback([options, json, &chosen] {
    chosen.action = [options, json] {
      const auto keys = shown_keys(ConfigDocument::load(options->config, options->all_sets()));
      fmt::print("{}", *json ? to_json(keys).dump(1) + "\n" : table(keys, options->config));
      return 0;
    };
  });

  verb->add_subcommand("schema", "JSON Schema of configs, for editors")->callback([&chosen] {
    chosen.action = [] {
      fmt::print("{}\n", config_schema().dump(1));
      return 0;
    };
  });

  verb->add_subcommand("reference", "every key with its range and default, as a Markdown page")
      ->callback([&chosen] {
        chosen.action = [] {
          fmt::print("{}", config_reference());
          return 0;
        };
      });
}

}  // namespace handgrad::train::cli
