// Runs the commands of README.md and docs/*.md as written and compares what they print.
//
// A block that begins with ```console holds commands, `$ ./dev ...` or `$ handgrad ...`, each followed by what it prints.
// There `...` stands for any characters, and alone on a line for any lines; `[exit status 1]` ends the output of a command
// that fails. All blocks of a page share a folder, which has the repository's configs and data.
#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "handgrad/core/kernels/targets.h"
#include "paths.h"
#include "program.h"
#include "temporary_folder.h"

namespace {

namespace fs = std::filesystem;

struct Command {
  std::string text;
  std::vector<std::string> output;
  int status = 0;
};

std::vector<fs::path> pages() {
  std::vector<fs::path> found{HANDGRAD_SOURCE_DIR "/README.md", HANDGRAD_SOURCE_DIR "/CONTRIBUTING.md"};
  for (const auto& entry : fs::directory_iterator(HANDGRAD_SOURCE_DIR "/docs"))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  std::sort(found.begin() + 2, found.end());
  return found;
}

std::vector<Command> commands_of(const std::string& page) {
  std::vector<Command> commands;
  std::istringstream lines(page);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = line == "```console";
    } else if (inside && line.starts_with("$ ")) {
      commands.push_back({line.substr(2), {}, 0});
    } else if (inside && line.starts_with("[exit status ")) {
      commands.back().status = std::stoi(line.substr(13));
    } else if (inside && !commands.empty()) {
      commands.back().output.push_back(line);
    }
  }
  for (Command& command : commands)
    while (!command.output.empty() && command.output.back().empty()) command.output.pop_back();
  return commands;
}

/// Whether `shown`, in which "..." stands for any characters, is `line`.
bool matches_line(const std::string& shown, const std::string& line) {
  std::size_t at = 0, from = 0;
  bool first = true;
  for (;;) {
    const std::size_t dots = shown.find("...", from);
    const std::string part = shown.substr(from, dots == std::string::npos ? dots : dots - from);
    if (dots == std::string::npos && !first)
      return line.size() >= at + part.size() &&
             line.compare(line.size() - part.size(), part.size(), part) == 0;
    const std::size_t found = first ? (line.starts_with(part) ? 0 : std::string::npos) : line.find(part, at);
    if (found == std::string::npos) return false;
    at = found + part.size();
    if (dots == std::string::npos) return at == line.size();
    from = dots + 3;
    first = false;
  }
}

/// The first line of `shown` that `printed` does not have in its place; empty when all is as shown.
std::string first_difference(const std::vector<std::string>& shown, const std::vector<std::string>& printed) {
  std::size_t at = 0;
  bool anywhere = false;
  for (const std::string& line : shown) {
    if (line == "...") {
      anywhere = true;
      continue;
    }
    while (anywhere && at < printed.size() && !matches_line(line, printed[at])) ++at;
    if (at >= printed.size() || !matches_line(line, printed[at]))
      return line.empty() ? "(an empty line)" : line;
    ++at;
    anywhere = false;
  }
  return anywhere || at == printed.size() ? "" : "(more is printed: " + printed[at] + ")";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  while (!lines.empty() && lines.front().empty()) lines.erase(lines.begin());
  return lines;
}

/// A folder in which the commands of a page can be typed: `./dev` calls the built program, as the real one does after it
/// has built it.
void furnish(const fs::path& folder) {
  fs::create_directory_symlink(HANDGRAD_SOURCE_DIR "/configs", folder / "configs");
  fs::create_directory_symlink(HANDGRAD_SOURCE_DIR "/data", folder / "data");
  std::ofstream(folder / "dev") << "#!/bin/sh\n"
                                   "export HANDGRAD_CALLED_AS=./dev\n"
                                   "if [ \"$1\" = run ]; then\n"
                                   "  shift\n"
                                   "  set -- train configs/toy.json --out runs/toy --overwrite \"$@\"\n"
                                   "fi\n"
                                   "exec '" HANDGRAD_PROGRAM "' \"$@\"\n";
  fs::create_directory(folder / "bin");
  fs::create_symlink(HANDGRAD_PROGRAM, folder / "bin" / "handgrad");
  fs::permissions(folder / "dev", fs::perms::owner_all);
}

Outcome run(const fs::path& folder, const std::string& command) {
  const fs::path out = folder / ".out";
  const std::string line = "unset HANDGRAD_CALLED_AS; cd '" + folder.string() +
                           "' && PATH=\"$PWD/bin:$PATH\" && { " + command + "\n} >'" + out.string() +
                           "' 2>&1 </dev/null";
  const int result = std::system(line.c_str());
  return {WIFEXITED(result) ? WEXITSTATUS(result) : -1, read_file(out), ""};
}

}  // namespace

TEST_CASE("what pages show is what their commands print") {
  // Without fused multiply-adds the last digits of a trained model differ.
  const bool digits_differ = std::string(handgrad::kernels::target_name()) == "baseline";
  std::size_t compared = 0;
  for (const fs::path& page : pages()) {
    const TemporaryFolder folder;
    furnish(folder.path());
    for (const Command& command : commands_of(read_file(page))) {
      const Outcome outcome = run(folder.path(), command.text);
      CAPTURE(page.filename().string());
      CAPTURE(command.text);
      CAPTURE(outcome.out);
      CHECK(outcome.status == command.status);
      ++compared;
      if (!digits_differ) CHECK(first_difference(command.output, lines_of(outcome.out)) == "");
    }
  }
  CHECK(compared >= 10);
}

TEST_CASE("every command that a page names is shown somewhere with its output") {
  std::set<std::string> shown;
  for (const fs::path& page : pages())
    for (const Command& command : commands_of(read_file(page))) shown.insert(command.text);
  const std::regex named("`(\\./dev [a-z][^`]*)`");
  for (const fs::path& page : pages()) {
    const std::string text = read_file(page);
    for (std::sregex_iterator at(text.begin(), text.end(), named), end; at != end; ++at) {
      const std::string command = (*at)[1];
      // The tests themselves, what installs packages, GPT-2's size (tests/test_program.cpp), words that stand for others.
      const std::regex elsewhere("^\\./dev (test|packages)|gpt2_124m|\\.\\.\\.|\\b[A-Z]{2,}\\b");
      if (std::regex_search(command, elsewhere)) continue;
      CHECK_MESSAGE(shown.count(command) == 1, page.filename().string(), ": ", command);
    }
  }
}

TEST_CASE("the README's four numbers are the program beside the tests, and what it prints") {
  const std::string readme = read_file(HANDGRAD_SOURCE_DIR "/README.md");
  const auto block = [&](const std::string& after, const std::string& opening) {
    const std::size_t begin = readme.find(opening, readme.find(after)) + opening.size();
    return readme.substr(begin, readme.find("```", begin) - begin);
  };
  const std::string code = block("## Four numbers", "```cpp\n");
  const std::string source = read_file(HANDGRAD_SOURCE_DIR "/tests/consumer/main.cpp");
  std::size_t at = 0;
  for (const std::string& line : lines_of(code)) {
    if (line.empty()) continue;
    at = source.find("\n  " + line + "\n", at);
    REQUIRE_MESSAGE(at != std::string::npos, line);
  }
  const TemporaryFolder folder;
  CHECK(run(folder.path(), "'" HANDGRAD_FOUR_NUMBERS "'").out == block("## Four numbers", "```text\n"));
}

TEST_CASE("the comparison of pages sees differences") {
  CHECK(matches_line("step 5", "step 5"));
  CHECK(!matches_line("step 5", "step 50"));
  CHECK(matches_line("in ... s", "in 0.3 s"));
  CHECK(!matches_line("in ... s", "in 0.3 m"));
  CHECK(matches_line("...end", "the end"));
  CHECK(first_difference({"a", "...", "d"}, {"a", "b", "c", "d"}) == "");
  CHECK(first_difference({"a", "...", "x"}, {"a", "b"}) == "x");
  CHECK(first_difference({"a"}, {"a", "b"}) == "(more is printed: b)");
  CHECK(first_difference({"a", "b"}, {"a"}) == "b");
}
