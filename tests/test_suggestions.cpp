// The commands that outputs suggest can be typed as they are.
#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "handgrad/view/next.h"
#include "program.h"
#include "temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using handgrad::view::Next;
using handgrad::view::Suggestion;

void replace(std::string& text, const std::string& old, const std::string& now) {
  REQUIRE_MESSAGE(text.find(old) != std::string::npos, old);
  text.replace(text.find(old), old.size(), now);
}

/// configs/toy.json in `folder`, with fewer steps.
void write_toy(const fs::path& folder) {
  std::string config = read_file(HANDGRAD_SOURCE_DIR "/configs/toy.json");
  replace(config, "../data/boats.txt", HANDGRAD_SOURCE_DIR "/data/boats.txt");
  replace(config, "\"steps\": 300", "\"steps\": 20");
  replace(config, "\"checkpoint_every\": 100", "\"checkpoint_every\": 10");
  fs::create_directory(folder / "configs");
  std::ofstream(folder / "configs" / "toy.json") << config;
}

/// The row whose reason is in `text`, the longest one; nullptr without any.
const Suggestion* row_in(const std::string& text) {
  const Suggestion* found = nullptr;
  for (const Suggestion& row : handgrad::view::suggestions())
    if (text.find(row.why) != text.npos &&
        (found == nullptr || std::string(row.why).size() > std::string(found->why).size()))
      found = &row;
  return found;
}

/// The suggested commands in an output, in its order; what they are for goes to `seen`. A command's line or the next one
/// has its reason.
std::vector<std::string> commands_in(const std::string& output, std::set<Next>& seen) {
  std::vector<std::string> commands;
  std::istringstream lines(output);
  std::string line, after;
  for (std::getline(lines, line); std::getline(lines, after); line = after) {
    const std::size_t begin = line.find("  handgrad "),
                      next = begin == line.npos ? line.find(": handgrad ") : begin;
    if (next == line.npos) continue;
    const Suggestion* row = row_in(line);
    if (row == nullptr) row = row_in(after);
    REQUIRE_MESSAGE(row != nullptr, line);
    const std::size_t word = line.find("handgrad ", next) + 9;
    commands.push_back(line.substr(word, line.find("   ", word) - word));
    seen.insert(row->next);
  }
  return commands;
}

}  // namespace

TEST_CASE("every command that an output suggests runs") {
  const TemporaryFolder folder;
  write_toy(folder.path());
  std::set<Next> seen;
  const auto run = [&](const std::string& arguments) {
    const Outcome outcome = handgrad_in(folder.path(), arguments);
    CHECK_MESSAGE(outcome.status == 0, arguments << "\n" << outcome.err);
    return outcome;
  };
  const auto follow = [&](const std::string& arguments) {
    const Outcome outcome = run(arguments);
    for (const std::string& command : commands_in(outcome.out + "\n" + outcome.err + "\n\n", seen))
      run(command);
  };
  follow("");
  follow("train configs/toy.json --set train.stop_after=10 --out runs/half");
  run("trace runs/half --out OTHER.safetensors");
  for (const char* arguments :
       {"train --resume runs/toy", "inspect runs/half", "inspect runs/half --of gradient",
        "inspect runs/half final_norm.scale", "trace runs/half --out half.safetensors",
        "explain layer_norm 2 2 6 6", "explain layer_norm 2 2 6 6 --blank", "explain gelu 1 2",
        "explain runs/half --layer trf_blocks.0.ff", "explain runs/half --layer final_norm --step 10"})
    follow(arguments);
  fs::remove_all(folder.path() / "runs" / "toy" / "checkpoints" / "step-000040");  // as if killed at step 40
  follow("explain runs/toy --layer final_norm");
  // The one that Ctrl-C leaves.
  run(handgrad::view::suggestion(Next::resume, {"runs/half"}).first.substr(9));
  seen.insert(Next::resume);
  for (const Suggestion& row : handgrad::view::suggestions())
    CHECK_MESSAGE(seen.contains(row.next), std::string(row.command));
}

TEST_CASE("every command that the report's page shows runs") {
  const TemporaryFolder folder;
  write_toy(folder.path());
  REQUIRE(handgrad_in(folder.path(), "train configs/toy.json").status == 0);
  std::size_t commands = 0;
  for (const auto& file : fs::directory_iterator(HANDGRAD_SOURCE_DIR "/view/report")) {
    std::string script = read_file(file.path());
    for (const auto& [expression, value] :
         {std::pair{"${shellWord(`${run.path}/config.json`)}", "runs/toy/config.json"},
          {"${shellWord(run.path)}", "runs/toy"},
          {"${trajectory.name}", "final_norm.scale"},
          {"${shellWord(norm.owner)}", "final_norm"},
          {"${at}", " --at The"}})
      while (script.find(expression) != script.npos) replace(script, expression, value);
    const std::string program = "${page.program} ";
    for (std::size_t at = script.find(program); at != script.npos; at = script.find(program, at + 1)) {
      const std::size_t begin = at + program.size();
      const std::string command = script.substr(begin, script.find('`', begin) - begin);
      const Outcome outcome = handgrad_in(folder.path(), command);
      CHECK_MESSAGE(outcome.status == 0, command << "\n" << outcome.err);
      ++commands;
    }
  }
  CHECK(commands >= 6);
}
