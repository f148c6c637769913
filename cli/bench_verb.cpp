// handgrad bench op, handgrad bench step CONFIG
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/cli/bench.h"
#include "handgrad/cli/verbs.h"

namespace handgrad::cli {

void add_bench(CLI::App& app, Chosen& chosen) {
  CLI::App* verb =
      app.add_subcommand("bench", "measure how long operations and training steps take")->group("prove");
  verb->require_subcommand(1);
  auto json = std::make_shared<bool>(false);
  auto config = std::make_shared<ConfigOptions>();

  CLI::App* op = verb->add_subcommand("op", "operations on a few numbers, in nanoseconds");
  op->add_flag("--json", *json, "as JSON");
  op->callback([json, &chosen] {
    chosen.action = [json] {
      const auto times = bench_ops();
      fmt::print("{}", *json ? to_json(times).dump() + "\n" : table(times));
      return 0;
    };
  });

  CLI::App* step = verb->add_subcommand("step", "one training step of a config, in milliseconds");
  config->add_to(*step, true);
  step->add_flag("--json", *json, "as JSON");
  step->callback([json, config, &chosen] {
    chosen.action = [json, config] {
      config->apply_threads();
      train::Run run(train::ConfigDocument::load(config->config, config->all_sets()));
      const StepTime time = bench_step(run, std::filesystem::path(config->config).stem().string());
      fmt::print("{}", *json ? to_json(time).dump() + "\n" : table(time));
      return 0;
    };
  });
}

}  // namespace handgrad::cli
