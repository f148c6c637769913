#include "handgrad/train/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace handgrad::train::cli {

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
}

bool wait_for_enter() {
  for (;;) {
    const int c = std::getchar();
    if (c == '\n') return true;
    if (c == EOF) return false;
  }
}

}  // namespace handgrad::train::cli
