#include "handgrad/cli/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/cli/terminal.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/version.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

/// What verbs are for, in the order in which help lists them.
constexpr std::pair<const char*, const char*> kPurposes[] = {{"look", "look at numbers"},
                                                             {"train", "train"},
                                                             {"files", "files and configs"},
                                                             {"prove", "measure and prove"}};

bool is_shown(const CLI::App* verb) { return !verb->get_group().empty(); }

std::vector<const CLI::App*> verbs_of(const CLI::App& command) { return command.get_subcommands(is_shown); }

/// "handgrad config show"
std::string full_name(const CLI::App& command) {
  if (command.get_parent() == nullptr) return io::program_name();
  return full_name(*command.get_parent()) + " " + command.get_name();
}

std::vector<Entry> operands_of(const CLI::App& command) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional())
      entries.push_back({option->get_option_text() + (option->get_items_expected_max() > 1 ? "..." : ""),
                         option->get_description()});
  return entries;
}

std::vector<Entry> options_of(const CLI::App& command) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) continue;
    std::string name;
    for (const std::string& letter : option->get_snames()) name += "-" + letter + ", ";
    name += "--" + option->get_lnames().front();
    if (!option->get_option_text().empty()) name += " " + option->get_option_text();
    entries.push_back({name, option->get_description()});
  }
  // --help, which CLI11 makes first, is what a reader has just found.
  if (!entries.empty()) std::rotate(entries.begin(), entries.begin() + 1, entries.end());
  return entries;
}

std::string usage(const CLI::App& command) {
  std::string text = full_name(command);
  if (!verbs_of(command).empty()) return text + (command.get_parent() == nullptr ? " VERB ..." : " ...");
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_option_text();
    text += option->get_required() ? " " + name : " [" + name + "]";
    if (option->get_items_expected_max() > 1) text += "...";
  }
  return text + (options_of(command).size() > 1 ? " [OPTION]..." : "");
}

std::size_t widest(const std::vector<Entry>& entries, std::size_t least, std::size_t most) {
  std::size_t width = least;
  for (const Entry& entry : entries)
    if (entry.name.size() <= most) width = std::max(width, entry.name.size());
  return width;
}

std::vector<Entry> verb_entries(const CLI::App& command, std::string_view group = "") {
  std::vector<Entry> entries;
  for (const CLI::App* verb : verbs_of(command))
    if (group.empty() || verb->get_group() == group)
      entries.push_back({verb->get_name(), verb->get_description()});
  return entries;
}

std::string program_help(const CLI::App& program) {
  std::string text = fmt::format("usage  {}\n\n{}\n", usage(program),
                                 view::wrapped(program.get_description(), 0, text_columns()));
  for (const auto& [group, purpose] : kPurposes)
    if (const auto entries = verb_entries(program, group); !entries.empty())
      text += fmt::format("\n{}\n{}", purpose, entry_lines(entries, 10));
  return text + "\n" +
         view::wrapped(
             fmt::format("{0} VERB --help tells what a verb takes; {0} --version what this program is.",
                         io::program_name()),
             0, text_columns()) +
         "\n";
}

}  // namespace

std::string entry_lines(const std::vector<Entry>& entries, std::size_t width) {
  std::string text;
  for (const Entry& entry : entries) {
    text += entry.name.size() > width ? fmt::format("  {}\n{:{}}", entry.name, "", width + 4)
                                      : fmt::format("  {:<{}}  ", entry.name, width);
    text += view::wrapped(entry.doc, width + 4, text_columns()) + "\n";
  }
  return text;
}

std::string help_text(const CLI::App& command) {
  if (command.get_parent() == nullptr) return program_help(command);
  std::string text = fmt::format("usage  {}\n\n{}\n", usage(command),
                                 view::wrapped(command.get_description(), 0, text_columns()));
  if (const auto verbs = verb_entries(command); !verbs.empty())
    return text + "\n" + entry_lines(verbs, 10) +
           fmt::format("\n{} ... --help tells what each takes.\n", full_name(command));
  const auto operands = operands_of(command), options = options_of(command);
  const std::size_t width = std::max(widest(operands, 0, 26), widest(options, 0, 26));
  if (!operands.empty()) text += "\n" + entry_lines(operands, width);
  text += "\n" + entry_lines(options, width);
  if (!command.get_footer().empty()) text += "\n" + command.get_footer() + "\n";
  return text;
}

// ---- Manual page

namespace {

/// Text that troff takes as it is.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '-' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

void put_entries(std::string& page, const std::vector<Entry>& entries) {
  for (const Entry& entry : entries)
    page += fmt::format(".TP\n.B {}\n{}\n", roff(entry.name), roff(entry.doc));
}

void put_command(std::string& page, const CLI::App& command) {
  if (const auto verbs = verbs_of(command); !verbs.empty()) {
    for (const CLI::App* verb : verbs) put_command(page, *verb);
    return;
  }
  page += fmt::format(".SS {}\n{}\n", roff(usage(command)), roff(command.get_description()));
  put_entries(page, operands_of(command));
  put_entries(page, options_of(command));
}

}  // namespace

std::string man_page(const CLI::App& program) {
  std::string page = fmt::format(
      ".TH HANDGRAD 1 \"\" \"handgrad {}\" \"User commands\"\n"
      ".SH NAME\nhandgrad \\- train a GPT and see every number of it\n"
      ".SH SYNOPSIS\n.B {}\n.SH DESCRIPTION\n{}\nResults go to standard output, progress and errors to "
      "standard "
      "error.\n.SH COMMANDS\n",
      train::kVersion, roff(usage(program)), roff(program.get_description()));
  put_command(page, program);
  return page +
         ".SH EXIT STATUS\n"
         ".TP\n.B 0\ndone\n"
         ".TP\n.B 1\nit failed while running: a missing file, bad data, a loss that is not finite\n"
         ".TP\n.B 2\nwrong usage or config\n"
         ".TP\n.B 130, 143\nstopped by Ctrl\\-C or SIGTERM; a checkpoint was left\n";
}

// ---- Completion

namespace {

std::string words(const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& entry : entries)
    text += (text.empty() ? "" : " ") + entry.name.substr(0, entry.name.find(' '));
  return text;
}

/// One line for each command: the words that may follow it.
void put_cases(std::string& script, const CLI::App& command, const std::string& path) {
  const auto verbs = verbs_of(command);
  const std::string next = verbs.empty() ? words(options_of(command)) : words(verb_entries(command));
  script += fmt::format("    '{}') words='{}' ;;\n", path, next);
  for (const CLI::App* verb : verbs)
    put_cases(script, *verb, path.empty() ? verb->get_name() : path + " " + verb->get_name());
}

}  // namespace

std::string bash_completion(const CLI::App& program) {
  std::string cases;
  put_cases(cases, program, "");
  std::string inner;  // verbs that have verbs of their own
  for (const CLI::App* verb : verbs_of(program))
    if (!verbs_of(*verb).empty()) inner += (inner.empty() ? "" : "|") + verb->get_name();
  return "# bash completion of handgrad\n"
         "_handgrad() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} path='' words=''\n"
         "  [ \"$COMP_CWORD\" -gt 1 ] && path=${COMP_WORDS[1]}\n"
         "  case $path in\n"
         "    " +
         inner +
         ") [ \"$COMP_CWORD\" -gt 2 ] && path=\"$path ${COMP_WORDS[2]}\" ;;\n"
         "  esac\n"
         "  case $path in\n" +
         cases +
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
         "}\n"
         "complete -o default -F _handgrad handgrad\n";
}

}  // namespace handgrad::cli
