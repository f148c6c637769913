// handgrad config show CONFIG, handgrad config schema, handgrad config reference
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/cli/verbs.h"
#include "handgrad/train/run.h"
#include "handgrad/view/config_keys.h"

namespace handgrad::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string table(const std::vector<view::ShownKey>& keys, const std::string& name) {
  std::size_t key_width = 3, value_width = 5;
  for (const view::ShownKey& key : keys) {
    key_width = std::max(key_width, key.key.size());
    value_width = std::max(value_width, std::min<std::size_t>(key.value.size(), 50));
  }
  std::string text =
      fmt::format("{}\n\n{:<{}}  {:<{}}  from\n", name, "key", key_width, "value", value_width);
  for (const view::ShownKey& key : keys) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", key.key, key_width, key.value.empty() ? "-" : key.value,
                        value_width, key.value.empty() ? "not given" : key.origin);
  }
  return text;
}

Json to_json(const std::vector<view::ShownKey>& keys) {
  Json list = Json::array();
  for (const view::ShownKey& key : keys)
    list.push_back({{"key", key.key},
                    {"value", key.value.empty() ? Json() : Json::parse(key.value)},
                    {"from", key.value.empty() ? "not given" : key.origin}});
  return list;
}

}  // namespace

void add_config(CLI::App& app, Chosen& chosen) {
  CLI::App* verb = app.add_subcommand("config", "the keys of configs, and the values of one")->group("files");
  verb->require_subcommand(1);

  auto options = std::make_shared<ConfigOptions>();
  auto json = std::make_shared<bool>(false);
  CLI::App* show = verb->add_subcommand("show", "every key of a config: its value and where that came from");
  options->add_to(*show, true);
  show->add_flag("--json", *json, "as JSON");
  show->callback([options, json, &chosen] {
    chosen.action = [options, json] {
      const auto keys = view::shown_keys(train::ConfigDocument::load(options->config, options->all_sets()));
      fmt::print("{}", *json ? to_json(keys).dump(1) + "\n" : table(keys, options->config));
      return 0;
    };
  });

  verb->add_subcommand("schema", "JSON Schema of configs, for editors")->callback([&chosen] {
    chosen.action = [] {
      fmt::print("{}\n", view::config_schema().dump(1));
      return 0;
    };
  });

  verb->add_subcommand("reference", "every key with its range and default, as a Markdown page")
      ->callback([&chosen] {
        chosen.action = [] {
          fmt::print("{}", view::config_reference());
          return 0;
        };
      });
}

}  // namespace handgrad::cli
