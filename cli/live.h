// train --serve: what the terminal shows is also a page.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/cli/live_server.h"
#include "handgrad/train/session.h"

namespace handgrad::cli {

/// Tells a session's progress to the terminal's listener and, where a port was asked for, to a server.
class Live final : public train::SessionListener {
 public:
  Live(train::SessionListener& terminal, std::optional<int> port);

  void begin(const std::filesystem::path& folder);
  void started(const train::Run& run, std::optional<double> validation_loss) override;
  void stepped(const train::Run& run, const train::StepReport& report,
               std::optional<double> validation_loss) override;
  void saved(const std::filesystem::path& checkpoint) override { terminal_.saved(checkpoint); }
  /// The last step is done. `data`: the report_data of the run; null: the page stays as it was.
  void finished(const nlohmann::ordered_json& data);
  /// The page stays until `stop`, and stderr says so after the `state` of things; without a server it returns at once.
  void stay(const std::atomic<bool>& stop, const std::string& state) const;

 private:
  SessionListener& terminal_;
  std::unique_ptr<LiveServer> server_;
};

}  // namespace handgrad::cli
