// Help, man page and completion of the command line: three views of the same commands and options.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "handgrad/cli/verb.h"

namespace handgrad::cli {

/// A name and what it stands for: an option, an operand or a verb.
struct Entry {
  std::string name;  ///< "--step N"
  std::string doc;   ///< a sentence without its full stop
};

/// One line for each entry, its meaning beside it, as wide as the terminal allows. A name of more than `width`
/// characters gets a separate line.
std::string entry_lines(const std::vector<Entry>& entries, std::size_t width);

/// The verbs inside `verb` that help lists.
std::vector<const Verb*> shown_verbs(const Verb& verb);

/// What the help says about --help.
constexpr const char* kHelpDoc = "this text";

/// @{ What --help prints for the program, and for one of its verbs, whose full name is "handgrad config show".
std::string program_help(const Verb& program);
std::string verb_help(const Verb& verb, const std::string& name);
/// @}

/// The manual page of the whole program, in the man macros.
std::string man_page(const Verb& program);

/// A script for bash that completes verbs, options and file names.
std::string bash_completion(const Verb& program);

}  // namespace handgrad::cli
