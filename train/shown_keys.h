// The keys of a config as people are shown them: value in force, and where it came from.
#pragma once

#include <string>
#include <vector>

#include "handgrad/train/config.h"

namespace handgrad::train {

/// A value that is in force, or why there is none.
struct ShownKey {
  std::string key;     ///< "model.norm.eps"
  std::string value;   ///< as JSON text; empty when there is none
  std::string origin;  ///< "default", "file" or "command line"; empty when there is no value
};

/// Every key of a config. The keys of each section stay together, in the order in which the sections are read. ConfigError
/// for a config with a mistake.
std::vector<ShownKey> shown_keys(const ConfigDocument& document);

}  // namespace handgrad::train
