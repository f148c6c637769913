#include "handgrad/cli/config_options.h"

#include <iterator>

#include "handgrad/core/parallel.h"

namespace handgrad::cli {

Option ConfigOptions::set_option() {
  return {"--set", "KEY=VALUE", "override one key, such as train.steps=500; may be given several times",
          &sets};
}

Option ConfigOptions::threads_option() {
  return {"--threads",
          "N",
          "threads to work with (default: the cores that the process may use)",
          &threads,
          {.least = 1, .most = 1024}};
}

std::vector<Option> ConfigOptions::options(bool config_required, std::vector<Option> more) {
  std::vector<Option> all{
      {"config", "CONFIG", "the config, a JSON file", &config, {.required = config_required}},
      set_option(),
      threads_option(),
      {"--dtype",
       "TYPE",
       "element type of the run: float32 or float64",
       &dtype,
       {.choices = {"float32", "float64"}}}};
  std::move(more.begin(), more.end(), std::back_inserter(all));
  return all;
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
