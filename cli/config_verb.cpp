// handgrad config show CONFIG, handgrad config schema, handgrad config reference
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/cli/config_options.h"
#include "handgrad/cli/verb.h"
#include "handgrad/train/run.h"
#include "handgrad/view/config_keys.h"
#include "handgrad/view/table.h"

namespace handgrad::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string table(const std::vector<view::ShownKey>& keys, const std::string& name) {
  view::Table rows({{"key", view::Align::left},
                    {.heading = "value", .align = view::Align::left, .most = 50},
                    {"from", view::Align::left}});
  for (const view::ShownKey& key : keys)
    rows.add({key.key, key.value.empty() ? "-" : key.value, key.value.empty() ? "not given" : key.origin});
  return name + "\n\n" + rows.text();
}

Json to_json(const std::vector<view::ShownKey>& keys) {
  Json list = Json::array();
  for (const view::ShownKey& key : keys)
    list.push_back({{"key", key.key},
                    {"value", key.value.empty() ? Json() : Json::parse(key.value)},
                    {"from", key.value.empty() ? "not given" : key.origin}});
  return list;
}

int show(const ConfigOptions& options, bool json) {
  const auto keys = view::shown_keys(train::ConfigDocument::load(options.config, options.all_sets()));
  return print_text(json ? to_json(keys).dump(1) + "\n" : table(keys, options.config));
}

}  // namespace

Verb config_verb() {
  struct ConfigRequest {
    ConfigOptions config;
    bool json = false;
  };
  auto request = std::make_shared<ConfigRequest>();
  return {.name = "config",
          .purpose = "the keys of configs, and the values of one",
          .group = Group::files,
          .verbs = {{.name = "show",
                     .purpose = "every key of a config: its value and where that came from",
                     .options = request->config.options(true, {{"--json", "", "as JSON", &request->json}}),
                     .run = [request] { return show(request->config, request->json); }},
                    {.name = "schema",
                     .purpose = "JSON Schema of configs, for editors",
                     .run = [] { return print_text(view::config_schema().dump(1) + "\n"); }},
                    {.name = "reference",
                     .purpose = "every key with its range and default, as a Markdown page",
                     .run = [] { return print_text(view::config_reference()); }}}};
}

}  // namespace handgrad::cli
