// Help, man page and completion of the command line: three views of the same commands and options.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace handgrad::train::cli {

/// What --help prints for the program or one of its verbs.
std::string help_text(const CLI::App& command);

/// The manual page of the whole program, in the man macros.
std::string man_page(const CLI::App& program);

/// A script for bash that completes verbs, options and file names.
std::string bash_completion(const CLI::App& program);

}  // namespace handgrad::train::cli
