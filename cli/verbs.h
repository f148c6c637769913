// The verbs of the program. Each adds its options to the command line and says what to run when it was chosen.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
class Validator;
}  // namespace CLI

namespace handgrad::cli {

/// What a verb does; its result is the exit status.
using Action = std::function<int()>;

/// The verb that the command line chose leaves its action here.
struct Chosen {
  Action action;
};

void add_train(CLI::App& app, Chosen& chosen);
void add_inspect(CLI::App& app, Chosen& chosen);
void add_generate(CLI::App& app, Chosen& chosen);
void add_bench(CLI::App& app, Chosen& chosen);
void add_config(CLI::App& app, Chosen& chosen);
void add_check(CLI::App& app, Chosen& chosen);
void add_layers(CLI::App& app, Chosen& chosen);
void add_report(CLI::App& app, Chosen& chosen);
void add_trace(CLI::App& app, Chosen& chosen);
void add_explain(CLI::App& app, Chosen& chosen);
void add_manual(CLI::App& app, Chosen& chosen);

/// Options that every verb with a config has.
struct ConfigOptions {
  std::string config;
  std::vector<std::string> sets;
  int threads = 0;
  std::string dtype;

  void add_to(CLI::App& verb, bool config_required);
  /// Only --set and --threads, for a verb that finds its config itself.
  void add_options_to(CLI::App& verb);
  /// `sets`, with those that other options stand for.
  std::vector<std::string> all_sets() const;
  /// Puts --threads into force.
  void apply_threads() const;
};

/// Checks of an option's value, whose messages say what it must be: "must be at least 0, got -1".
CLI::Validator at_least(double least);
CLI::Validator between(double least, double most);
CLI::Validator one_of(std::vector<std::string> choices);

/// CLI::ValidationError for an option or an operand that was given an empty text.
void throw_empty_values(const CLI::App& app);

/// What the command line does wrong, and what was probably meant.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace handgrad::cli
