// Ctrl-C and SIGTERM. Only the program installs handlers, never the library.
#pragma once

#include <atomic>

namespace handgrad::cli {

/// From listen() on, the first SIGINT or SIGTERM asks for a stop after the current step; a second one ends the program at
/// once, with the last checkpoint as it is. Before that, signals do what they always do: there is nothing to save yet.
class StopOnSignal {
 public:
  StopOnSignal() = default;
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  void listen();

  const std::atomic<bool>& requested() const;
  /// 130 after SIGINT, 143 after SIGTERM, 0 without a signal.
  int exit_status() const;
};

}  // namespace handgrad::cli
