// handgrad bench op, handgrad bench step CONFIG
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/cli/bench.h"
#include "handgrad/cli/config_options.h"
#include "handgrad/cli/verb.h"

namespace handgrad::cli {
namespace {

template <class Times>
int print(const Times& times, bool json) {
  fmt::print("{}", json ? to_json(times).dump() + "\n" : table(times));
  return 0;
}

}  // namespace

Verb bench_verb() {
  struct BenchRequest {
    bool json = false;
    ConfigOptions config;
  };
  auto request = std::make_shared<BenchRequest>();
  const Option json{"--json", "", "as JSON", &request->json};
  return {.name = "bench",
          .purpose = "measure how long operations and training steps take",
          .group = Group::prove,
          .verbs = {{.name = "op",
                     .purpose = "operations on a few numbers, in nanoseconds",
                     .options = {json},
                     .run = [request] { return print(bench_ops(), request->json); }},
                    {.name = "step",
                     .purpose = "one training step of a config, in milliseconds",
                     .options = request->config.options(true, {json}),
                     .run = [request] {
                       const ConfigOptions& config = request->config;
                       config.apply_threads();
                       train::Run run(train::ConfigDocument::load(config.config, config.all_sets()));
                       return print(bench_step(run, std::filesystem::path(config.config).stem().string()),
                                    request->json);
                     }}}};
}

}  // namespace handgrad::cli
