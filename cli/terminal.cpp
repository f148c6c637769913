#include "handgrad/cli/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

namespace handgrad::cli {

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

std::size_t terminal_columns() {
  constexpr std::size_t kUsual = 100, kLeast = 20;
  winsize size{};
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    if (::ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
      return std::max<std::size_t>(size.ws_col, kLeast);
  const char* columns = std::getenv("COLUMNS");
  const unsigned long told = columns == nullptr ? 0 : std::strtoul(columns, nullptr, 10);
  return told > 0 && told < 10000 ? std::max<std::size_t>(told, kLeast) : kUsual;
}

std::size_t text_columns() { return std::min<std::size_t>(100, terminal_columns()); }

bool wait_for_enter(const std::function<bool()>& stop) {
  constexpr int kMilliseconds = 50;
  while (!stop()) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, kMilliseconds) <= 0) continue;
    char c = 0;
    if (::read(STDIN_FILENO, &c, 1) != 1) return false;
    if (c == '\n') return true;
  }
  return false;
}

// ---- Signals

namespace {

std::atomic<bool> stop{false};
std::atomic<int> received{0};

/// The reader of the output closed the pipe: the run ends as after Ctrl-C.
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
