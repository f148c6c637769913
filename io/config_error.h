// ConfigError: what is wrong with a config, and where.
#pragma once

#include <string>

#include "handgrad/core/error.h"

namespace handgrad::io {

/// A config that cannot be used: an unknown key, a wrong type, a value out of range, text that is not JSON.
/// One line:
///
///     configs/toy.json: /model/n_heads: must divide emb_dim = 100, got 12
class ConfigError : public Error {
 public:
  /// `file`: where the value was written: a file, or "--set train.steps=ten"; empty: a config without a file.
  /// `pointer`: JSON pointer of the value; empty when it is about the text as a whole. `rule`: what was
  /// broken and what came instead.
  ConfigError(std::string file, std::string pointer, std::string rule)
      : Error(file.empty() ? "config" : file, pointer.empty() ? rule : pointer + ": " + rule),
        file_(std::move(file)),
        pointer_(std::move(pointer)),
        rule_(std::move(rule)) {}

  /// @{ As they were given to the constructor.
  const std::string& file() const { return file_; }
  const std::string& pointer() const { return pointer_; }
  const std::string& rule() const { return rule_; }
  /// @}

 private:
  std::string file_, pointer_, rule_;
};

}  // namespace handgrad::io
