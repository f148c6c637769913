// A verb of the program as data: what it is called, what it takes, what it runs. Help, manual page, completion and the
// parser (command_line.cpp) are made from it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace handgrad::cli {

/// Where the value of an option goes. A `bool` or a function without argument makes it a flag; a vector takes many.
using Target = std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
                            std::optional<int>*, std::optional<std::int64_t>*, std::vector<std::string>*,
                            std::function<void()>, std::function<void(const std::string&)>>;

/// What must hold for the values of an option. None may be empty.
struct Rules {
  bool required = false;
  /// @{ The range of a number.
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  /// @}
  std::vector<std::string> choices = {};    ///< the words to choose from; empty: any
  int values = 1;                           ///< how many follow the option's name
  std::optional<std::string> without = {};  ///< the value when none follows the name
};

/// An option, or an operand: its name has no dashes.
struct Option {
  std::string name;         ///< "--step"
  std::string placeholder;  ///< "N"; empty for a flag
  std::string help;         ///< a sentence without its full stop
  Target target;
  Rules rules = {};

  bool is_operand() const { return !name.starts_with("-"); }
  bool takes_many() const { return std::holds_alternative<std::vector<std::string>*>(target); }
};

/// What a verb is for; help lists them in this order. Verbs inside another one have none.
enum class Group { none, look, train, files, prove, hidden };

/// A verb, or the whole program, which has only verbs.
struct Verb {
  std::string name;     ///< "inspect"
  std::string purpose;  ///< a sentence without its full stop
  Group group = Group::none;
  std::vector<Option> options = {};
  std::function<int()> run = {};  ///< returns the exit status; reads what the options' targets hold
  std::vector<Verb> verbs = {};   ///< verbs inside this one: "show" of `config show`
  std::string footer = {};        ///< the end of its help
};

/// Prints a result; returns the exit status of a success.
int print_text(const std::string& text);

/// The program with all of its verbs. Options write into variables that only the verbs of this call share.
Verb program();

/// Parses the command line and runs the chosen verb; without a verb prints `greeting`. Prints what --help and --version
/// request. Wrong usage is reported on stderr with a suggestion. Returns the exit status.
int run_command_line(const Verb& program, const std::string& greeting, const std::string& version, int argc,
                     char** argv);

/// What the error says, with `step` as --step where a verb has such an option, and `handgrad` as the program's name.
std::string error_text(const std::exception& error);

}  // namespace handgrad::cli
