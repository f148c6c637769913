// Help, man page and completion of the command line: three views of the same commands and options.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace handgrad::cli {

/// A name and what it stands for: an option, an operand or a verb.
struct Entry {
  std::string name;  ///< "--step N"
  std::string doc;   ///< a sentence without its full stop
};

/// One line for each entry, its meaning beside it, as wide as the terminal allows. A name of more than `width`
/// characters gets a separate line.
std::string entry_lines(const std::vector<Entry>& entries, std::size_t width);

/// What --help prints for the program or one of its verbs.
std::string help_text(const CLI::App& command);

/// The manual page of the whole program, in the man macros.
std::string man_page(const CLI::App& program);

/// A script for bash that completes verbs, options and file names.
std::string bash_completion(const CLI::App& program);

}  // namespace handgrad::cli
