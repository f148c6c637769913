// The only file that knows CLI11: makes its commands and options from verbs, and words its errors.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "handgrad/cli/help.h"
#include "handgrad/io/near_match.h"
#include "handgrad/io/program_name.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

// ---- From verbs to CLI11

/// What is wrong with a value: "must be at least 0, got -1"; empty when it keeps the rules.
std::string broken_rule(const Rules& rules, const std::string& text) {
  if (!rules.choices.empty())
    return std::find(rules.choices.begin(), rules.choices.end(), text) != rules.choices.end()
               ? ""
               : fmt::format("must be {}, got {}", view::listed(rules.choices, "or"), text);
  double value = 0;
  if (CLI::detail::lexical_cast(text, value) && value >= rules.least && value <= rules.most) return "";
  return std::isinf(rules.most) ? fmt::format("must be at least {}, got {}", rules.least, text)
                                : fmt::format("must be {} to {}, got {}", rules.least, rules.most, text);
}

CLI::Option* add_target(CLI::App& command, const Option& option) {
  return std::visit(
      [&](const auto& target) {
        using T = std::decay_t<decltype(target)>;
        if constexpr (std::is_same_v<T, bool*>)
          return command.add_flag(option.name, *target, option.help);
        else if constexpr (std::is_same_v<T, std::function<void()>>)
          return command.add_flag_callback(option.name, target, option.help);
        else if constexpr (std::is_same_v<T, std::function<void(const std::string&)>>)
          return command.add_option_function<std::string>(option.name, target, option.help);
        else
          return command.add_option(option.name, *target, option.help);
      },
      option.target);
}

void add_option(CLI::App& command, const Option& option) {
  const Rules& rules = option.rules;
  CLI::Option* added = add_target(command, option);
  if (!option.placeholder.empty()) added->option_text(option.placeholder);
  if (rules.required) added->required();
  if (rules.values != 1)
    added->expected(rules.values);
  else if (option.takes_many() && !option.is_operand())
    added->take_all()->expected(1);
  if (rules.without) added->expected(0, 1)->default_str(*rules.without);
  if (!rules.choices.empty() || !std::isinf(rules.least) || !std::isinf(rules.most))
    added->check(CLI::Validator([&rules](std::string& text) { return broken_rule(rules, text); }, ""));
}

/// Adds what `verb` takes to `command`, whose full name is `name`. The chosen verb goes to `chosen`.
void add_verb(CLI::App& command, const Verb& verb, const std::string& name, const Verb*& chosen) {
  command.formatter_fn([&verb, name](const CLI::App* app, std::string, CLI::AppFormatMode) {
    return app->get_parent() == nullptr ? program_help(verb) : verb_help(verb, name);
  });
  for (const Option& option : verb.options) add_option(command, option);
  for (const Verb& inner : verb.verbs) {
    CLI::App* added = command.add_subcommand(inner.name);
    if (!inner.verbs.empty()) added->require_subcommand(1);
    add_verb(*added, inner, name + " " + inner.name, chosen);
  }
  if (verb.run) command.callback([&verb, &chosen] { chosen = &verb; });
}

// ---- Arguments

/// The arguments in the order in which CLI11 takes them, the last one first. CLI11 knows that -1 is a number and takes -.5
/// and -inf for options: a blank before them keeps it from that. What follows an option is its value in any case.
std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    const bool is_value = i > 0 && words[i - 1].starts_with("--");
    const bool digit_follows = word.size() > 1 && word[1] >= '0' && word[1] <= '9';
    if (is_value || digit_follows || !word.starts_with('-')) continue;
    const char* end = word.data() + word.size();
    double number = 0;
    const auto [stopped, error] = std::from_chars(word.data(), end, number);
    if (error == std::errc() && stopped == end) word.insert(0, " ");
  }
  std::reverse(words.begin(), words.end());
  return words;
}

/// CLI::ValidationError for an option or an operand with an empty value.
void throw_empty_values(const CLI::App& command) {
  for (const CLI::App* verb : command.get_subcommands()) throw_empty_values(*verb);
  for (const CLI::Option* option : command.get_options())
    for (const std::string& value : option->results())
      if (value.empty()) {
        const bool named = !option->get_positional();
        throw CLI::ValidationError(named ? "--" + option->get_lnames().front() : option->get_option_text(),
                                   "must not be empty");
      }
}

// ---- Wrong usage

std::vector<std::string> shown_names(const Verb& command) {
  std::vector<std::string> names;
  for (const Verb* verb : shown_verbs(command)) names.push_back(verb->name);
  return names;
}

/// A word that nothing takes: a verb or an option that does not exist, or one operand too many.
std::string unexpected(const CLI::App& command, const Verb& verb, const std::string& word) {
  if (word.starts_with("-")) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
      if (!option->get_positional()) names.push_back("--" + option->get_lnames().front());
    const std::string near = io::near_match(word, names);
    return fmt::format("there is no option {}{}", word, near.empty() ? "" : "; did you mean " + near + "?");
  }
  const std::vector<std::string> verbs = shown_names(verb);
  if (!verbs.empty()) return fmt::format("there is no \"{}\"{}", word, io::did_you_mean(word, verbs));
  return fmt::format("takes no more operands, got \"{}\"", word);
}

/// The first thing that must be given and is not.
std::string missing(const CLI::App& command, const Verb& verb) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    const std::string name = option->get_positional() ? "" : "--" + option->get_lnames().front() + " ";
    return fmt::format("needs {}{}, {}", name, option->get_option_text(), option->get_description());
  }
  return fmt::format("needs {}", view::listed(shown_names(verb), "or"));
}

/// "--threads must be at least 1, got 0" and the like, from CLI11 or from broken_rule.
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

/// What the command line does wrong, and what was probably meant.
std::string usage_message(const CLI::App& app, const Verb& program, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  const Verb* verb = &program;
  std::string name;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    verb = &*std::find_if(verb->verbs.begin(), verb->verbs.end(),
                          [&](const Verb& inner) { return inner.name == command->get_name(); });
    name += (name.empty() ? "" : " ") + verb->name;
  }
  const std::vector<std::string> rest = command->remaining();
  std::string what = other(error);
  if (!rest.empty()) {
    what = unexpected(*command, *verb, rest.front());
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    what = missing(*command, *verb);
  }
  return fmt::format("{}: {}\n  try: {} {}--help\n", name.empty() ? io::program_name() : name, what,
                     io::program_name(), name.empty() ? "" : name + " ");
}

}  // namespace

int run_command_line(const Verb& program, const std::string& greeting, const std::string& version, int argc,
                     char** argv) {
  CLI::App app("", program.name);
  app.set_help_flag("-h,--help", kHelpDoc);
  app.set_version_flag("--version", version, "what this program is");
  app.require_subcommand(0, 1);
  const Verb* chosen = nullptr;
  add_verb(app, program, io::program_name(), chosen);
  try {
    app.parse(arguments(argc, argv));
    throw_empty_values(app);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "{}", usage_message(app, program, error));
    return 2;
  }
  if (chosen != nullptr) return chosen->run();
  fmt::print("{}", greeting);
  return 0;
}

}  // namespace handgrad::cli
