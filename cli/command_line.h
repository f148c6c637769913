// Reads a command line of the program as data says it (verb.h).
#pragma once

#include <string>

#include "handgrad/cli/verb.h"

namespace handgrad::cli {

/// Parses the command line and runs the chosen verb; without a verb prints `greeting`. Prints what --help and --version
/// ask for. Wrong usage goes to stderr with the probable intention. Returns the exit status.
int run_command_line(const Verb& program, const std::string& greeting, const std::string& version, int argc,
                     char** argv);

}  // namespace handgrad::cli
