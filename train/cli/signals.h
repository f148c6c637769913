// Ctrl-C and SIGTERM. Only the program installs handlers, never the library.
#pragma once

#include <atomic>

namespace handgrad::train::cli {

/// While it lives, the first SIGINT or SIGTERM asks for a stop after the current step; a second one ends the program at
/// once, with the last checkpoint as it is.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  const std::atomic<bool>& requested() const;
  /// 130 after SIGINT, 143 after SIGTERM, 0 without a signal.
  int exit_status() const;
};

}  // namespace handgrad::train::cli
