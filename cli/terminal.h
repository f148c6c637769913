// The terminal: its width, the keyboard, and the signals that it sends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <functional>

namespace handgrad::cli {

/// Whether a person looks at this stream; a line may then be rewritten in place.
bool is_terminal(std::FILE* stream);

/// Columns of the terminal behind stdout or stderr; without one what the environment says in COLUMNS, else 100.
std::size_t terminal_columns();
/// The same, but at most 100: running text is not made wider than that.
std::size_t text_columns();

/// Waits for Enter on standard input; false at its end, or when `stop` says so meanwhile.
bool wait_for_enter(const std::function<bool()>& stop);

/// Ctrl-C and SIGTERM. Only the program installs handlers, never the library.
///
/// After listen(), the first SIGINT or SIGTERM requests a stop after the current step; a second one ends the program
/// immediately and leaves the last checkpoint as it is. Before listen(), signals have their default action, because there
/// is nothing to save yet.
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
