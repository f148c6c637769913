#include "handgrad/cli/live.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace handgrad::cli {

Live::Live(train::SessionListener& terminal, std::optional<int> port) : terminal_(terminal) {
  if (!port) return;
  server_ = std::make_unique<LiveServer>(*port);
  fmt::print(stderr, "live      {}\n\n", server_->url());
}

void Live::begin(const std::filesystem::path& folder) {
  if (server_) server_->begin(folder);
}

void Live::started(const train::Run& run, std::optional<double> validation_loss) {
  terminal_.started(run, validation_loss);
}

/// The server first: the terminal may wait for a key.
void Live::stepped(const train::Run& run, const train::StepReport& report,
                   std::optional<double> validation_loss) {
  if (server_) server_->stepped(report.step, report.loss);
  terminal_.stepped(run, report, validation_loss);
}

void Live::finished(const nlohmann::ordered_json& data) {
  if (server_) server_->finish(data);
}

void Live::stay(const std::atomic<bool>& stop, const std::string& state) const {
  if (!server_ || stop) return;
  std::fflush(stdout);
  fmt::print(stderr, "\n{}: the page stays at {} until Ctrl-C\n", state, server_->url());
  while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace handgrad::cli
