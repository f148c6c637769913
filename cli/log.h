// The log of a training run.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace spdlog {
class logger;
}

namespace handgrad::cli {

/// Appends to a file and, from a level on, also to stderr.
class Log {
 public:
  /// `level`: "info", "warn" or "error"; the file has everything.
  Log(const std::filesystem::path& file, const std::string& level);

  void info(const std::string& text);
  void warn(const std::string& text);
  /// An error in the file only: the program itself reports it on stderr when it ends.
  void error_in_file(const std::string& text);

 private:
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace handgrad::cli
