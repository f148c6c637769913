// What is said about a command line that was not understood.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "handgrad/cli/verbs.h"
#include "handgrad/io/near_match.h"
#include "handgrad/io/program_name.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

std::vector<std::string> verbs_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* verb : command.get_subcommands([](const CLI::App*) { return true; }))
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    if (!option->get_positional()) names.push_back("--" + option->get_lnames().front());
  return names;
}

/// A word that nothing takes: a verb or an option that does not exist, or one operand too many.
std::string unexpected(const CLI::App& command, const std::string& word) {
  if (word.starts_with("-")) {
    const std::string near = io::near_match(word, options_of(command));
    return fmt::format("there is no option {}{}", word, near.empty() ? "" : "; did you mean " + near + "?");
  }
  const std::vector<std::string> verbs = verbs_of(command);
  if (!verbs.empty()) return fmt::format("there is no \"{}\"{}", word, io::did_you_mean(word, verbs));
  return fmt::format("takes no more operands, got \"{}\"", word);
}

/// The first thing that must be given and is not.
std::string missing(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    const std::string name = option->get_positional() ? "" : "--" + option->get_lnames().front() + " ";
    return fmt::format("needs {}{}, {}", name, option->get_option_text(), option->get_description());
  }
  return fmt::format("needs {}", view::listed(verbs_of(command), "or"));
}

/// "--threads: must be at least 1, got 0" and the like, from CLI11 or from the checks below.
std::string other(const CLI::ParseError& error) {
  std::string text = error.what();
  const std::size_t colon = text.find(": ");
  if (colon == std::string::npos) return text;
  const std::string subject = text.substr(0, colon), rest = text.substr(colon + 2);
  if (rest.ends_with(" missing")) return subject + " needs a value";
  constexpr std::string_view kReceived = " required but received ";  // "At Most 1 required but received 2"
  if (const std::size_t at = rest.find(kReceived); at != std::string::npos) {
    const std::string rule = rest.substr(0, at), count = rest.substr(at + kReceived.size());
    return rule.starts_with("At Most")
               ? fmt::format("{} can be given once, and came {} times", subject, count)
               : fmt::format("{} needs {} values, got {}", subject, rule.substr(rule.rfind(' ') + 1), count);
  }
  if (subject == "Could not convert") {
    const std::size_t equals = rest.find(" = ");
    if (equals != std::string::npos)
      return fmt::format("{} must be a number, got {}", rest.substr(0, equals), rest.substr(equals + 3));
  }
  return subject + " " + rest;
}

}  // namespace

CLI::Validator at_least(double least) {
  return CLI::Validator(
      [least](std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least) return std::string();
        return fmt::format("must be at least {}, got {}", least, text);
      },
      "");
}

CLI::Validator between(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
        return fmt::format("must be {} to {}, got {}", least, most, text);
      },
      "");
}

CLI::Validator one_of(std::vector<std::string> choices) {
  return CLI::Validator(
      [choices = std::move(choices)](std::string& text) {
        if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string();
        return fmt::format("must be {}, got {}", view::listed(choices, "or"), text);
      },
      "");
}

void throw_empty_values(const CLI::App& app) {
  for (const CLI::App* verb : app.get_subcommands()) throw_empty_values(*verb);
  for (const CLI::Option* option : app.get_options())
    for (const std::string& value : option->results())
      if (value.empty()) {
        const bool named = !option->get_positional();
        throw CLI::ValidationError(named ? "--" + option->get_lnames().front() : option->get_option_text(),
                                   "must not be empty");
      }
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += (name.empty() ? "" : " ") + command->get_name();
  }
  const std::vector<std::string> rest = command->remaining();
  std::string what = other(error);
  if (!rest.empty()) {
    what = unexpected(*command, rest.front());
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    what = missing(*command);
  }
  return fmt::format("{}: {}\n  try: {} {}--help\n", name.empty() ? io::program_name() : name, what,
                     io::program_name(), name.empty() ? "" : name + " ");
}

}  // namespace handgrad::cli
