#include "handgrad/cli/signals.h"

#include <unistd.h>
#include <csignal>

namespace handgrad::cli {
namespace {

std::atomic<bool> stop{false};
std::atomic<int> received{0};

/// The reader of the tables has gone: the run ends as after Ctrl-C.
extern "C" void on_closed_pipe(int signal) {
  received.store(signal);
  stop.store(true);
}

extern "C" void on_signal(int signal) {
  if (received.exchange(signal) != 0) ::_exit(128 + signal);
  stop.store(true);
}

}  // namespace

void StopOnSignal::listen() {
  stop.store(false);
  received.store(0);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGPIPE, on_closed_pipe);
}

StopOnSignal::~StopOnSignal() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
}

const std::atomic<bool>& StopOnSignal::requested() const { return stop; }

int StopOnSignal::exit_status() const {
  const int signal = received.load();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace handgrad::cli
