// The library's errors in the words of the command line.
#pragma once

#include <exception>
#include <string>

namespace handgrad::cli {

/// What the error says, with `step` as --step where a verb has such an option, and `handgrad` as the program's name.
std::string error_text(const std::exception& error);

}  // namespace handgrad::cli
