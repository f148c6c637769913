// handgrad explain OPERATION NUMBER..., handgrad explain RUN_OR_CONFIG --layer PATH
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "handgrad/cli/config_options.h"
#include "handgrad/cli/help.h"
#include "handgrad/cli/verb.h"
#include "handgrad/core/error.h"
#include "handgrad/io/near_match.h"
#include "handgrad/io/program_name.h"
#include "handgrad/view/explain/model_row.h"
#include "handgrad/view/explain/operation.h"
#include "handgrad/view/next.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string what, part = "all", dtype;
  std::vector<std::string> numbers;
  std::map<std::string, std::string> options;  // of operations, by name
  std::string layer, at, then, row, step;
  bool blank = false, python = false, json = false;
  ConfigOptions config;
};

bool read_number(const std::string& word, double& value) {
  const char* begin = word.data() + (word.starts_with('+') ? 1 : 0);
  const char* end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stopped == end;
}

/// "2 2 6 6 / 1,2,3,4": numbers separated by blanks or commas, rows by slashes.
std::vector<view::explain::Numbers> read_rows(const std::string& verb, const std::string& subject,
                                              std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::vector<view::explain::Numbers> rows(1);
  std::string word;
  text += ' ';
  for (const char c : text) {
    if (c != ' ' && c != '/') {
      word += c;
      continue;
    }
    if (double value = 0; !word.empty()) {
      if (!read_number(word, value))
        throw ValueError(verb, fmt::format("{} must be numbers, got \"{}\"", subject, word));
      rows.back().push_back(value);
      word.clear();
    }
    if (c == '/') rows.emplace_back();
  }
  return rows;
}

/// A word as it is arguments; the blank before a negative number (see arguments() in cli.cpp) is not.
std::string word_text(const std::string& word) {
  return io::shell_word(word.substr(word.starts_with(" -") ? 1 : 0));
}

/// What was arguments, without the options that only say how to print it.
std::string command_of(const Arguments& arguments) {
  std::string command = fmt::format("{} explain {}", io::program_name(), io::shell_word(arguments.what));
  for (const std::string& number : arguments.numbers) command += " " + word_text(number);
  for (const auto& [name, value] : arguments.options)
    command += fmt::format(" --{} {}", name, word_text(value));
  for (const auto& [name, value] :
       {std::pair{"dtype", &arguments.dtype}, std::pair{"layer", &arguments.layer},
        std::pair{"at", &arguments.at}, std::pair{"then", &arguments.then}, std::pair{"row", &arguments.row},
        std::pair{"step", &arguments.step}})
    if (!value->empty()) command += fmt::format(" --{} {}", name, io::shell_word(*value));
  for (const std::string& set : arguments.config.sets) command += " --set " + io::shell_word(set);
  return command;
}

/// JSON and Python have all of a page.
void throw_together(const Arguments& arguments) {
  std::vector<std::string> forms;
  for (const auto& [name, given] :
       {std::pair{"--json", arguments.json}, std::pair{"--python", arguments.python},
        std::pair{"--blank", arguments.blank}})
    if (given) forms.emplace_back(name);
  if (arguments.part != "all" && !forms.empty() && forms.front() != "--blank") forms.emplace_back("--part");
  if (forms.size() > 1)
    throw ValueError("explain " + arguments.what,
                     fmt::format("{} do not go together", view::listed(forms, "and")), {}, "one of them");
}

[[noreturn]] void throw_part(const Arguments& arguments,
                             const std::vector<view::explain::Section>& sections) {
  std::vector<std::string> there;
  for (const std::string& name : view::explain::part_names())
    if (std::any_of(sections.begin(), sections.end(), [&](const auto& s) { return name_of(s.part) == name; }))
      there.push_back("--part " + name);
  throw ValueError("explain " + arguments.what, fmt::format("there is no part {} here", arguments.part), {},
                   view::listed(there, "or"));
}

void print(const view::explain::Explanation& explanation, const Arguments& arguments) {
  if (arguments.json) {
    fmt::print("{}\n", explanation.json);
  } else if (arguments.python) {
    if (explanation.python.empty())
      throw ValueError("explain " + arguments.what, "--python is for operations and for LayerNorm's rows");
    fmt::print("{}", explanation.python);
  } else {
    const auto& sections = explanation.sheet.sections;
    const auto& parts = view::explain::part_names();
    const auto part = static_cast<view::explain::Part>(std::find(parts.begin(), parts.end(), arguments.part) -
                                                       parts.begin());
    if (part != view::explain::Part::all &&
        std::none_of(sections.begin(), sections.end(), [&](const auto& s) { return s.part == part; }))
      throw_part(arguments, sections);
    view::explain::Sheet sheet = explanation.sheet;
    if (arguments.blank) sheet.next = {view::suggestion(view::Next::key, {command_of(arguments)})};
    fmt::print("{}", view::explain::text(sheet, {.part = part, .blank = arguments.blank}));
  }
}

int explain_operation(const Arguments& arguments) {
  const std::string verb = "explain " + arguments.what;
  view::explain::Request request{
      .operation = arguments.what,
      .rows = read_rows(verb, "x", fmt::format("{}", fmt::join(arguments.numbers, " "))),
      .dtype = arguments.dtype == "float32" ? DType::float32 : DType::float64,
      .command = command_of(arguments)};
  for (const auto& [name, text] : arguments.options)
    request.options[name] = read_rows(verb, "--" + name, text);
  print(view::explain::explain(request), arguments);
  return 0;
}

[[noreturn]] void throw_what(const std::string& what) {
  std::vector<std::string> known;
  for (const view::explain::Operation& operation : view::explain::operations())
    known.emplace_back(operation.name);
  throw ValueError("explain", fmt::format("there is no operation, run or config \"{}\"{}", what,
                                          io::did_you_mean(what, known)));
}

std::optional<std::int64_t> read_step(const Arguments& arguments) {
  if (arguments.step.empty() || arguments.step == "last") return std::nullopt;
  const auto step = view::whole_number(arguments.step);
  if (!step)
    throw ValueError("explain " + arguments.what,
                     fmt::format("--step must be a step or 'last', got '{}'", arguments.step), {},
                     "--step 100, --step last");
  return step;
}

int explain_layer(const Arguments& arguments) {
  const std::string verb = "explain " + arguments.what;
  if (!arguments.numbers.empty())
    throw ValueError(verb, fmt::format("takes no numbers, since x comes from the model, got \"{}\"",
                                       fmt::format("{}", fmt::join(arguments.numbers, " "))));
  for (const auto& [name, value] : arguments.options)
    if (name != "lr") throw ValueError(verb, fmt::format("takes no --{}: it comes from the model", name));
  arguments.config.apply_threads();
  view::explain::ModelRequest request{.run = arguments.what,
                                      .sets = arguments.config.sets,
                                      .layer = arguments.layer,
                                      .then = arguments.then,
                                      .row = arguments.row,
                                      .step = read_step(arguments),
                                      .json = arguments.json,
                                      .command = command_of(arguments)};
  if (!arguments.dtype.empty()) request.sets.push_back("train.dtype=" + arguments.dtype);
  if (!arguments.at.empty()) request.at = arguments.at;
  if (const auto lr = arguments.options.find("lr"); lr != arguments.options.end()) {
    const auto rows = read_rows(verb, "--lr", lr->second);
    if (rows.size() != 1 || rows.front().size() != 1 || !(rows.front().front() >= 0))
      throw ValueError(verb, "--lr must be one number of at least 0, got " + lr->second);
    request.lr = rows.front().front();
  }
  print(view::explain::explain_model(request), arguments);
  return 0;
}

int explain_what(const Arguments& arguments) {
  throw_together(arguments);
  if (view::explain::find_operation(arguments.what) == nullptr) {
    if (!fs::exists(arguments.what)) throw_what(arguments.what);
    return explain_layer(arguments);
  }
  for (const auto& [name, given] :
       {std::pair{"layer", !arguments.layer.empty()}, std::pair{"at", !arguments.at.empty()},
        std::pair{"then", !arguments.then.empty()}, std::pair{"row", !arguments.row.empty()},
        std::pair{"step", !arguments.step.empty()}, std::pair{"set", !arguments.config.sets.empty()}})
    if (given)
      throw ValueError("explain " + arguments.what,
                       fmt::format("--{} belongs to a run or a config, not to an operation", name), {},
                       fmt::format("{} explain runs/toy --layer final_norm", io::program_name()));
  return explain_operation(arguments);
}

std::string operations_text() {
  std::vector<Entry> entries;
  for (const view::explain::Operation& operation : view::explain::operations())
    entries.push_back({fmt::format("{} {}", operation.name, operation.example), operation.does});
  std::string text = "operations\n" + entry_lines(entries, 18);
  text.pop_back();
  return text;
}

/// Those for a run or a config.
std::vector<Option> model_options(const std::shared_ptr<Arguments>& arguments) {
  return {{"--layer", "PATH", "of a run or a config: the module to explain, final_norm", &arguments->layer},
          {"--at", "TEXT", "a text: the row of its last token", &arguments->at},
          {"--then", "TOKEN", "the token that comes next, whose loss is explained (default: the likeliest)",
           &arguments->then},
          {"--row", "B,T", "a row of the batch that the next step reads: number of the text, of the token",
           &arguments->row},
          {"--step", "N", "after this step; between checkpoints the run is repeated (default: last)",
           &arguments->step},
          arguments->config.set_option(),
          arguments->config.threads_option()};
}

}  // namespace

Verb explain_verb() {
  auto arguments = std::make_shared<Arguments>();
  Verb verb{.name = "explain",
            .purpose = "every line of an operation's arithmetic, forward, backward and one step",
            .group = Group::look,
            .options = {{"what",
                         "WHAT",
                         "an operation, a run's folder, or a config",
                         &arguments->what,
                         {.required = true}},
                        {"numbers", "NUMBER",
                         "x of the operation; rows are separated by a slash: 2 2 6 6 / 1 7 9 15",
                         &arguments->numbers}},
            .run = [arguments] { return explain_what(*arguments); },
            .footer = operations_text()};
  const auto add = [&verb](std::vector<Option> options) {
    verb.options.insert(verb.options.end(), options.begin(), options.end());
  };
  for (const view::explain::Option& option : view::explain::options())
    add({{std::string("--") + option.name, option.placeholder, option.doc,
          [arguments, name = option.name](const std::string& value) { arguments->options[name] = value; }}});
  add(model_options(arguments));
  add({{"--dtype",
        "TYPE",
        "float64 (an operation's default), or float32; a run has its own",
        &arguments->dtype,
        {.choices = {"float32", "float64"}}},
       {"--part",
        "PART",
        "only forward, backward or step",
        &arguments->part,
        {.choices = view::explain::part_names()}},
       {"--blank", "", "a work sheet: gaps instead of computed numbers", &arguments->blank},
       {"--python", "", "the same lines for PyTorch, with the numbers to expect", &arguments->python},
       {"--json", "", "every number in full precision", &arguments->json}});
  return verb;
}

}  // namespace handgrad::cli
