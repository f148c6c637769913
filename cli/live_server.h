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

/// Serves on 127.0.0.1 only, in separate threads. `/` is the page, `/events` sends its news: an event "data" with all
/// that the page shows, gathered from the run's folder while there are viewers; between them events "step" with step and
/// loss, ten a second at most; "end" when no more will come. Slow viewers skip updates and never delay training: for
/// each only the newest is kept. Requests under another host name, or from the page of another origin, get status 403.
///
/// What it costs the training: two atomic stores a step. Gathering runs at the lowest priority, and rests sixty times as
/// long as it has had a processor.
class LiveServer final : public train::StepObserver {
 public:
  /// Listens. `port` 0: any that is free. Error when it is taken.
  explicit LiveServer(int port);
  /// Ends every connection.
  ~LiveServer() override;
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  /// "http://127.0.0.1:8266/"
  std::string url() const;
  /// From now on there is a run to look at.
  void show(const std::filesystem::path& folder);
  /// The number and the loss that viewers see between two gatherings.
  void stepped(std::int64_t step, double loss);
  void after_step(const train::Trainer& /*trainer*/, const train::StepReport& report) override {
    stepped(report.step, report.loss);
  }
  /// The training is over: viewers get `data`, the run's report_data with the row through the norms, and the end. Null:
  /// they get the end alone. What is served from now on does not change.
  void finish(const nlohmann::ordered_json& data);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace handgrad::cli
