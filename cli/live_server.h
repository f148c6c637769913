// LiveServer: the page of a running run, for browsers on the same machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/train/trainer.h"

namespace handgrad::cli {

/// Listens on 127.0.0.1 only, in separate threads. `/` is the page and `/events` sends its updates: an event "data" with
/// everything the page shows, gathered from the run's folder while there are viewers; between them at most ten events
/// "step" a second, with step and loss; "end" after the last one. Slow viewers skip updates and never delay training:
/// each gets only the newest. Requests under another host name, or from a page of another origin, get status 403.
///
/// The training pays two atomic stores a step. The gathering thread has the lowest priority, and sleeps sixty times as
/// long as it has used a processor.
class LiveServer final : public train::StepObserver {
 public:
  /// Listens on `port`, 0 for any free one. Error when it is taken.
  explicit LiveServer(int port);
  /// Closes every connection.
  ~LiveServer() override;
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  /// "http://127.0.0.1:8266/"
  std::string url() const;
  /// Serves the run in this folder from now on.
  void show(const std::filesystem::path& folder);
  /// The step and loss that viewers see until the next "data".
  void stepped(std::int64_t step, double loss);
  void after_step(const train::Trainer& /*trainer*/, const train::StepReport& report) override {
    stepped(report.step, report.loss);
  }
  /// The training is over: sends viewers `data`, the run's report_data with the row through the norms, unless it is null,
  /// and "end". The page does not change any more.
  void finish(const nlohmann::ordered_json& data);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace handgrad::cli
