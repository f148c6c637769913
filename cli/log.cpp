// The only file that knows spdlog.
#include "handgrad/cli/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace handgrad::cli {

Log::Log(const std::filesystem::path& file, const std::string& level) {
  const auto in_file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
  const auto terminal = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  in_file->set_pattern("%Y-%m-%d %H:%M:%S  %l  %v");
  in_file->set_level(spdlog::level::info);
  terminal->set_pattern("%l: %v");
  terminal->set_level(spdlog::level::from_str(level));
  logger_ = std::make_shared<spdlog::logger>("run", spdlog::sinks_init_list{in_file, terminal});
  logger_->flush_on(spdlog::level::info);
}

void Log::info(const std::string& text) { logger_->info(text); }
void Log::warn(const std::string& text) { logger_->warn(text); }

void Log::error_in_file(const std::string& text) {
  spdlog::sinks::sink& file = *logger_->sinks().front();
  file.log({"run", spdlog::level::err, text});
  file.flush();
}

}  // namespace handgrad::cli
