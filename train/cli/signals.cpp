#include "handgrad/train/cli/signals.h"

#include <unistd.h>
#include <csignal>

namespace handgrad::train::cli {
namespace {

std::atomic<bool> stop{false};
std::atomic<int> received{0};

extern "C" void on_signal(int signal) {
  if (received.exchange(signal) != 0) ::_exit(128 + signal);
  stop.store(true);
}

}  // namespace

StopOnSignal::StopOnSignal() {
  stop.store(false);
  received.store(0);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

StopOnSignal::~StopOnSignal() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& StopOnSignal::requested() const { return stop; }

int StopOnSignal::exit_status() const {
  const int signal = received.load();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace handgrad::train::cli
