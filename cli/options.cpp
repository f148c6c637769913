// Options and lines that several verbs share.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "handgrad/cli/verbs.h"
#include "handgrad/core/parallel.h"

namespace handgrad::cli {

void ConfigOptions::add_to(CLI::App& verb, bool config_required) {
  auto* file = verb.add_option("config", config, "the config, a JSON file")->option_text("CONFIG");
  if (config_required) file->required();
  add_options_to(verb);
  verb.add_option("--dtype", dtype, "element type of the run: float32 or float64")
      ->option_text("TYPE")
      ->check(one_of({"float32", "float64"}));
}

void ConfigOptions::add_options_to(CLI::App& verb) {
  verb.add_option("--set", sets, "override one key, such as train.steps=500; may be given several times")
      ->option_text("KEY=VALUE")
      ->take_all()
      ->expected(1);
  verb.add_option("--threads", threads, "threads to work with (default: the cores that the process may use)")
      ->option_text("N")
      ->check(between(1, 1024));
}

std::vector<std::string> ConfigOptions::all_sets() const {
  std::vector<std::string> all = sets;
  if (!dtype.empty()) all.push_back("train.dtype=" + dtype);
  return all;
}

void ConfigOptions::apply_threads() const {
  if (threads > 0) set_thread_count(threads);
}

}  // namespace handgrad::cli
