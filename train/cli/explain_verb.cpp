// handgrad explain OPERATION NUMBER..., handgrad explain RUN_OR_CONFIG --layer PATH
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "handgrad/core/error.h"
#include "handgrad/nn/near_match.h"
#include "handgrad/train/cli/help.h"
#include "handgrad/train/cli/verbs.h"
#include "handgrad/train/explain/model_row.h"
#include "handgrad/train/explain/operation.h"
#include "handgrad/train/program_name.h"
#include "handgrad/train/text.h"

namespace handgrad::train::cli {
namespace {

namespace fs = std::filesystem;

/// As it was typed.
struct Typed {
  std::string what, part = "all", dtype;
  std::vector<std::string> numbers;
  std::map<std::string, std::string> lists, words;
  std::string layer, at, then, row, step;
  bool has_at = false, blank = false, python = false, json = false;
  ConfigOptions config;
};

bool read_number(const std::string& word, double& value) {
  const char* begin = word.data() + (word.starts_with('+') ? 1 : 0);
  const char* end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stopped == end;
}

/// "2 2 6 6 / 1,2,3,4": numbers parted by blanks or commas, rows by slashes.
std::vector<explain::Row> read_rows(const std::string& verb, const std::string& subject, std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::vector<explain::Row> rows(1);
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

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// A word as it is typed; the blank before a negative number (see arguments() in cli.cpp) is not.
std::string word_text(const std::string& word) {
  return shell_word(word.substr(word.starts_with(" -") ? 1 : 0));
}

/// What was typed, without the options that only say how to print it.
std::string command_of(const Typed& typed) {
  std::string command = fmt::format("{} explain {}", program_name(), shell_word(typed.what));
  for (const std::string& number : typed.numbers) command += " " + word_text(number);
  for (const auto* options : {&typed.lists, &typed.words})
    for (const auto& [name, value] : *options) command += fmt::format(" --{} {}", name, word_text(value));
  for (const auto& [name, value] :
       {std::pair{"dtype", &typed.dtype}, std::pair{"layer", &typed.layer}, std::pair{"at", &typed.at},
        std::pair{"then", &typed.then}, std::pair{"row", &typed.row}, std::pair{"step", &typed.step}})
    if (!value->empty()) command += fmt::format(" --{} {}", name, shell_word(*value));
  for (const std::string& set : typed.config.sets) command += " --set " + shell_word(set);
  return command;
}

explain::SheetOptions sheet_options(const Typed& typed) {
  using explain::Part;
  const std::map<std::string, Part> parts{
      {"all", Part::all}, {"forward", Part::forward}, {"backward", Part::backward}, {"step", Part::step}};
  return {.part = parts.at(typed.part), .blank = typed.blank};
}

/// JSON and Python have all of a page.
void refuse_together(const Typed& typed) {
  std::vector<std::string> forms;
  for (const auto& [name, given] : {std::pair{"--json", typed.json}, std::pair{"--python", typed.python},
                                    std::pair{"--blank", typed.blank}})
    if (given) forms.emplace_back(name);
  if (typed.part != "all" && !forms.empty() && forms.front() != "--blank") forms.emplace_back("--part");
  if (forms.size() > 1)
    throw ValueError("explain " + typed.what, fmt::format("{} do not go together", listed(forms, "and")), {},
                     "one of them");
}

[[noreturn]] void refuse_part(const Typed& typed, const std::vector<explain::Section>& sections) {
  std::vector<std::string> there;
  for (const auto& [part, option] :
       {std::pair{explain::Part::forward, "--part forward"},
        std::pair{explain::Part::backward, "--part backward"}, std::pair{explain::Part::step, "--part step"}})
    for (const explain::Section& section : sections)
      if (section.part == part && (there.empty() || there.back() != option)) there.emplace_back(option);
  throw ValueError("explain " + typed.what, fmt::format("there is no part {} here", typed.part), {},
                   listed(there, "or"));
}

void print(const explain::Explanation& explanation, const Typed& typed) {
  if (typed.json) {
    fmt::print("{}\n", explanation.json);
  } else if (typed.python) {
    if (explanation.python.empty())
      throw ValueError("explain " + typed.what, "--python is for operations and for LayerNorm's rows");
    fmt::print("{}", explanation.python);
  } else {
    const explain::SheetOptions options = sheet_options(typed);
    const auto& sections = explanation.sheet.sections;
    if (options.part != explain::Part::all &&
        std::none_of(sections.begin(), sections.end(), [&](const auto& s) { return s.part == options.part; }))
      refuse_part(typed, sections);
    explain::Sheet sheet = explanation.sheet;
    if (typed.blank) sheet.next = {{command_of(typed), "the key"}};
    fmt::print("{}", text(sheet, options));
  }
}

int explain_operation(const Typed& typed) {
  const std::string verb = "explain " + typed.what;
  explain::Request request{.operation = typed.what,
                           .rows = read_rows(verb, "x", joined(typed.numbers)),
                           .words = typed.words,
                           .dtype = typed.dtype == "float32" ? DType::float32 : DType::float64,
                           .command = command_of(typed)};
  for (const auto& [name, text] : typed.lists) request.lists[name] = read_rows(verb, "--" + name, text);
  print(explain::explain(request), typed);
  return 0;
}

[[noreturn]] void refuse_what(const std::string& what) {
  std::vector<std::string> known;
  for (const explain::Operation& operation : explain::operations()) known.emplace_back(operation.name);
  throw ValueError("explain", fmt::format("there is no operation, run or config \"{}\"{}", what,
                                          nn::did_you_mean(what, known)));
}

std::optional<std::int64_t> read_step(const Typed& typed) {
  if (typed.step.empty() || typed.step == "last") return std::nullopt;
  std::int64_t step = -1;
  const char* end = typed.step.data() + typed.step.size();
  const auto [stopped, error] = std::from_chars(typed.step.data(), end, step);
  if (error != std::errc() || stopped != end || step < 0)
    throw ValueError("explain " + typed.what,
                     fmt::format("--step must be a step or 'last', got '{}'", typed.step), {},
                     "--step 100, --step last");
  return step;
}

int explain_layer(const Typed& typed) {
  const std::string verb = "explain " + typed.what;
  if (!typed.numbers.empty())
    throw ValueError(verb, fmt::format("takes no numbers, since x comes from the model, got \"{}\"",
                                       joined(typed.numbers)));
  for (const auto* kept : {&typed.lists, &typed.words})
    for (const auto& [name, value] : *kept)
      if (name != "lr") throw ValueError(verb, fmt::format("takes no --{}: it comes from the model", name));
  typed.config.apply_threads();
  explain::ModelRequest request{.run = typed.what,
                                .sets = typed.config.sets,
                                .layer = typed.layer,
                                .then = typed.then,
                                .row = typed.row,
                                .step = read_step(typed),
                                .json = typed.json,
                                .command = command_of(typed)};
  if (!typed.dtype.empty()) request.sets.push_back("train.dtype=" + typed.dtype);
  if (typed.has_at) request.at = typed.at;
  if (const auto lr = typed.lists.find("lr"); lr != typed.lists.end()) {
    const auto rows = read_rows(verb, "--lr", lr->second);
    if (rows.size() != 1 || rows.front().size() != 1 || !(rows.front().front() >= 0))
      throw ValueError(verb, "--lr must be one number of at least 0, got " + lr->second);
    request.lr = rows.front().front();
  }
  print(explain::explain_model(request), typed);
  return 0;
}

int explain_what(const Typed& typed) {
  refuse_together(typed);
  if (explain::find_operation(typed.what) == nullptr) {
    if (!fs::exists(typed.what)) refuse_what(typed.what);
    return explain_layer(typed);
  }
  for (const auto& [name, given] :
       {std::pair{"layer", !typed.layer.empty()}, std::pair{"at", typed.has_at},
        std::pair{"then", !typed.then.empty()}, std::pair{"row", !typed.row.empty()},
        std::pair{"step", !typed.step.empty()}, std::pair{"set", !typed.config.sets.empty()}})
    if (given)
      throw ValueError("explain " + typed.what,
                       fmt::format("--{} belongs to a run or a config, not to an operation", name), {},
                       fmt::format("{} explain runs/toy --layer final_norm", program_name()));
  return explain_operation(typed);
}

/// An option that is kept as text under its name.
CLI::Option* add_kept(CLI::App& verb, std::map<std::string, std::string>& kept, const std::string& name,
                      const std::string& doc, const char* text) {
  return verb
      .add_option_function<std::string>(
          "--" + name, [&kept, name](const std::string& value) { kept[name] = value; }, doc)
      ->option_text(text);
}

std::string operations_text() {
  std::vector<Entry> entries;
  for (const explain::Operation& operation : explain::operations())
    entries.push_back({fmt::format("{} {}", operation.name, operation.example), operation.does});
  std::string text = "operations\n" + entry_lines(entries, 18);
  text.pop_back();
  return text;
}

}  // namespace

void add_explain(CLI::App& app, Chosen& chosen) {
  auto typed = std::make_shared<Typed>();
  CLI::App* verb =
      app.add_subcommand("explain", "every line of an operation's arithmetic, forward, backward and one step")
          ->group("look");
  verb->add_option("what", typed->what, "an operation, a run's folder, or a config")
      ->option_text("WHAT")
      ->required();
  verb->add_option("numbers", typed->numbers,
                   "x of the operation; rows are parted by a slash: 2 2 6 6 / 1 7 9 15")
      ->option_text("NUMBER");
  add_kept(*verb, typed->lists, "eps", "the number under the root (default 0.00001); 0: without it", "E");
  add_kept(*verb, typed->lists, "scale", "one number for each feature, 1,1,2,1 (default: ones)", "LIST");
  add_kept(*verb, typed->lists, "shift", "one number for each feature (default: zeros)", "LIST");
  add_kept(*verb, typed->lists, "upstream", "the gradient of the loss by each output (default: 1,0,0,...)",
           "LIST");
  add_kept(*verb, typed->lists, "lr", "learning rate of the step (default 0.1; adam's 0.001)", "L");
  add_kept(*verb, typed->lists, "weight", "of linear: a row for each output, 1,0/0,1", "ROWS");
  add_kept(*verb, typed->lists, "bias", "of linear: one number for each output (default: zeros)", "LIST");
  for (const char* name : {"queries", "keys", "values"})
    add_kept(*verb, typed->lists, name, "of attention: a row for each token (default: x)", "ROWS");
  add_kept(*verb, typed->lists, "target", "of cross_entropy: which came, for each row (default 0)", "LIST");
  add_kept(*verb, typed->lists, "start", "of adam: the parameter before the first step (default 1)", "X");
  add_kept(*verb, typed->lists, "betas", "of adam: how much of both averages is kept (default 0.9,0.999)",
           "LIST");
  add_kept(*verb, typed->lists, "weight-decay",
           "of adam: taken off the value itself, as AdamW does (default 0)", "W");
  verb->add_option("--layer", typed->layer, "of a run or a config: the module to explain, final_norm")
      ->option_text("PATH");
  verb->add_option_function<std::string>(
          "--at",
          [typed](const std::string& text) {
            typed->at = text;
            typed->has_at = true;
          },
          "a text: the row of its last token")
      ->option_text("TEXT");
  verb->add_option("--then", typed->then,
                   "the token that comes next, whose loss is explained (default: the likeliest)")
      ->option_text("TOKEN");
  verb->add_option("--row", typed->row,
                   "a row of the batch that the next step reads: number of the text, of the token")
      ->option_text("B,T");
  verb->add_option("--step", typed->step,
                   "after this step; between checkpoints the run is repeated (default: last)")
      ->option_text("N");
  typed->config.add_options_to(*verb);
  verb->add_option("--dtype", typed->dtype, "float64 (an operation's default), or float32; a run has its own")
      ->option_text("TYPE")
      ->check(one_of({"float32", "float64"}));
  verb->add_option("--part", typed->part, "only forward, backward or step")
      ->option_text("PART")
      ->check(one_of({"all", "forward", "backward", "step"}));
  verb->add_flag("--blank", typed->blank, "a work sheet: gaps in the place of what is computed");
  verb->add_flag("--python", typed->python, "the same lines for PyTorch, with the numbers to expect");
  verb->add_flag("--json", typed->json, "every number in full precision");
  verb->footer(operations_text());
  verb->callback([typed, &chosen] { chosen.action = [typed] { return explain_what(*typed); }; });
}

}  // namespace handgrad::train::cli
