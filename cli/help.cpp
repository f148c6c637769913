#include "handgrad/cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// The headings of the groups of verbs.
constexpr std::pair<Group, const char*> kPurposes[] = {{Group::look, "look at numbers"},
                                                       {Group::train, "train"},
                                                       {Group::files, "files and configs"},
                                                       {Group::prove, "measure and prove"}};

std::vector<Entry> operands_of(const Verb& verb) {
  std::vector<Entry> entries;
  for (const Option& option : verb.options)
    if (option.is_operand())
      entries.push_back({option.placeholder + (option.takes_many() ? "..." : ""), option.help});
  return entries;
}

/// Options, --help last.
std::vector<Entry> options_of(const Verb& verb) {
  std::vector<Entry> entries;
  for (const Option& option : verb.options)
    if (!option.is_operand())
      entries.push_back(
          {option.name + (option.placeholder.empty() ? "" : " ") + option.placeholder, option.help});
  entries.push_back({"-h, --help", kHelpDoc});
  return entries;
}

std::string usage(const Verb& verb, const std::string& name) {
  std::string text = name;
  if (!shown_verbs(verb).empty()) return text + " ...";
  for (const Option& option : verb.options)
    if (option.is_operand())
      text += (option.rules.required ? " " + option.placeholder : " [" + option.placeholder + "]") +
              (option.takes_many() ? "..." : "");
  return text + (options_of(verb).size() > 1 ? " [OPTION]..." : "");
}

std::string program_usage() { return io::program_name() + " VERB ..."; }

std::size_t widest(const std::vector<Entry>& entries, std::size_t least, std::size_t most) {
  std::size_t width = least;
  for (const Entry& entry : entries)
    if (entry.name.size() <= most) width = std::max(width, entry.name.size());
  return width;
}

std::vector<Entry> verb_entries(const std::vector<const Verb*>& verbs) {
  std::vector<Entry> entries;
  for (const Verb* verb : verbs) entries.push_back({verb->name, verb->purpose});
  return entries;
}

}  // namespace

std::vector<const Verb*> shown_verbs(const Verb& verb) {
  std::vector<const Verb*> shown;
  for (const Verb& inner : verb.verbs)
    if (inner.group != Group::hidden) shown.push_back(&inner);
  return shown;
}

std::string entry_lines(const std::vector<Entry>& entries, std::size_t width) {
  std::string text;
  for (const Entry& entry : entries) {
    text += entry.name.size() > width ? fmt::format("  {}\n{:{}}", entry.name, "", width + 4)
                                      : fmt::format("  {:<{}}  ", entry.name, width);
    text += view::wrapped(entry.doc, width + 4, text_columns()) + "\n";
  }
  return text;
}

std::string program_help(const Verb& program) {
  std::string text =
      fmt::format("usage  {}\n\n{}\n", program_usage(), view::wrapped(program.purpose, 0, text_columns()));
  for (const auto& [group, purpose] : kPurposes) {
    std::vector<const Verb*> verbs = shown_verbs(program);
    std::erase_if(verbs, [group = group](const Verb* verb) { return verb->group != group; });
    text += fmt::format("\n{}\n{}", purpose, entry_lines(verb_entries(verbs), 10));
  }
  return text + "\n" +
         view::wrapped(
             fmt::format("{0} VERB --help tells what a verb takes; {0} --version what this program is.",
                         io::program_name()),
             0, text_columns()) +
         "\n";
}

std::string verb_help(const Verb& verb, const std::string& name) {
  std::string text =
      fmt::format("usage  {}\n\n{}\n", usage(verb, name), view::wrapped(verb.purpose, 0, text_columns()));
  if (const auto verbs = shown_verbs(verb); !verbs.empty())
    return text + "\n" + entry_lines(verb_entries(verbs), 10) +
           fmt::format("\n{} ... --help tells what each takes.\n", name);
  const auto operands = operands_of(verb), options = options_of(verb);
  const std::size_t width = std::max(widest(operands, 0, 26), widest(options, 0, 26));
  if (!operands.empty()) text += "\n" + entry_lines(operands, width);
  text += "\n" + entry_lines(options, width);
  if (!verb.footer.empty()) text += "\n" + verb.footer + "\n";
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

void put_verb(std::string& page, const Verb& verb, const std::string& name) {
  for (const Verb* inner : shown_verbs(verb)) put_verb(page, *inner, name + " " + inner->name);
  if (!verb.verbs.empty()) return;
  page += fmt::format(".SS {}\n{}\n", roff(usage(verb, name)), roff(verb.purpose));
  put_entries(page, operands_of(verb));
  put_entries(page, options_of(verb));
}

}  // namespace

std::string man_page(const Verb& program) {
  std::string page = fmt::format(
      ".TH HANDGRAD 1 \"\" \"handgrad {}\" \"User commands\"\n"
      ".SH NAME\nhandgrad \\- train a GPT and see every number of it\n"
      ".SH SYNOPSIS\n.B {}\n.SH DESCRIPTION\n{}\nResults go to standard output, progress and errors to "
      "standard "
      "error.\n.SH COMMANDS\n",
      train::kVersion, roff(program_usage()), roff(program.purpose));
  put_verb(page, program, io::program_name());
  return page +
         ".SH EXIT STATUS\n"
         ".TP\n.B 0\ndone\n"
         ".TP\n.B 1\nit failed while running: a missing file, bad data, a loss that is not finite\n"
         ".TP\n.B 2\nwrong usage or config\n"
         ".TP\n.B 130, 143\nstopped by Ctrl\\-C or SIGTERM; a checkpoint was left\n";
}

// ---- Completion

namespace {

/// One line for each command: the words that may follow it.
void put_cases(std::string& script, const Verb& verb, const std::string& path) {
  const auto verbs = shown_verbs(verb);
  std::vector<std::string> next;
  for (const Verb* inner : verbs) next.push_back(inner->name);
  for (const Option& option : verb.options)
    if (verbs.empty() && !option.is_operand()) next.push_back(option.name);
  if (verbs.empty()) next.push_back("--help");
  script += fmt::format("    '{}') words='{}' ;;\n", path, fmt::join(next, " "));
  for (const Verb* inner : verbs)
    put_cases(script, *inner, path.empty() ? inner->name : path + " " + inner->name);
}

}  // namespace

std::string bash_completion(const Verb& program) {
  std::string cases;
  put_cases(cases, program, "");
  std::string inner;  // verbs with inner verbs
  for (const Verb* verb : shown_verbs(program))
    if (!verb->verbs.empty()) inner += (inner.empty() ? "" : "|") + verb->name;
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
