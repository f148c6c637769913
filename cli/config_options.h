// Options that every verb with a config has.
#pragma once

#include <string>
#include <vector>

#include "handgrad/cli/verb.h"

namespace handgrad::cli {

/// The values of these options.
struct ConfigOptions {
  std::string config;
  std::vector<std::string> sets;
  int threads = 0;
  std::string dtype;

  /// CONFIG, --set, --threads, --dtype, then `more`.
  std::vector<Option> options(bool config_required, std::vector<Option> more = {});
  /// @{ Some of them, for a verb that finds its config itself.
  Option set_option();
  Option threads_option();
  /// @}
  /// `sets`, and --dtype as a set.
  std::vector<std::string> all_sets() const;
  /// Sets the thread count to that of --threads.
  void apply_threads() const;
};

}  // namespace handgrad::cli
