// The commands that outputs suggest: one table, so that a test can run each of them.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace handgrad::view {

/// What a suggested command is for.
enum class Next {
  train_toy,
  inspect_toy,
  generate_toy,
  help,
  resume,
  more_steps,
  norms,
  generate,
  tensor,
  other_trace,
  features,
  elements,
  first_steps,
  csv,
  json,
  last_step,
  work_sheet,
  python,
  key,
  exact,
  upstream
};

/// A row of the table. `{}` in `command` stands for a word, or for the command that printed the suggestion.
struct Suggestion {
  Next next;            ///< one row for each
  const char* command;  ///< "handgrad inspect {} {}"
  const char* why;      ///< what it shows: "every number"
};

/// The table.
const std::vector<Suggestion>& suggestions();

/// A command to type, and what it shows.
using Command = std::pair<std::string, std::string>;

/// The command of a row under the name by which the program was called, its `{}` replaced by `words`, which are quoted for
/// a shell where they must be.
Command suggestion(Next next, const std::vector<std::string>& words = {});

/// The end of an output: at most two commands to type next, and what each shows.
std::string next_lines(const std::vector<Command>& commands, std::size_t columns);

}  // namespace handgrad::view
