#include "handgrad/view/next.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "handgrad/io/program_name.h"

namespace handgrad::view {

const std::vector<Suggestion>& suggestions() {
  static const std::vector<Suggestion> table{
      {Next::train_toy, "handgrad train configs/toy.json", "watch a block learn"},
      {Next::inspect_toy, "handgrad inspect runs/toy scale shift", "look at scale and shift"},
      {Next::generate_toy, "handgrad generate runs/toy --prompt \"The \"", "let it write"},
      {Next::help, "handgrad --help", "everything else"},
      {Next::resume, "handgrad train --resume {}", "resume"},
      {Next::more_steps, "handgrad train --resume {} --set train.steps={}", "more of it"},
      {Next::norms, "handgrad inspect {}", "the way of each norm, step by step"},
      {Next::generate, "handgrad generate {} --prompt \"The \"", "what it writes"},
      {Next::tensor, "handgrad inspect {} norm1 --values", "one of its tensors"},
      {Next::other_trace, "handgrad trace --compare {} OTHER.safetensors", "where another one departs"},
      {Next::features, "handgrad inspect {} {}", "its features, and why they moved"},
      {Next::elements, "handgrad inspect {} {} --of {} --step last --values", "every number of it"},
      {Next::first_steps, "handgrad inspect {} {} --step 1:{}", "its first steps, in numbers"},
      {Next::csv, "handgrad inspect {} {} --format csv", "every number"},
      {Next::json, "{} --json", "every number, in full"},
      {Next::last_step, "{} --step {}", "after the last step that was recorded, which is made again"},
      {Next::work_sheet, "{} --blank", "a work sheet, to fill in"},
      {Next::python, "{} --python", "the same in PyTorch"},
      {Next::key, "{}", "the key"},
      {Next::exact, "{} 1 7 9 15", "unequal distances, still exact"},
      {Next::upstream, "{} 2 2 6 6 --upstream 1,1,1,1 ", "why is d x 0 now?"}};
  return table;
}

Command suggestion(Next next, const std::vector<std::string>& words) {
  const auto row = std::find_if(suggestions().begin(), suggestions().end(),
                                [next](const Suggestion& s) { return s.next == next; });
  constexpr std::string_view kProgram = "handgrad";
  std::string_view rest = row->command;
  const bool continues = rest.starts_with("{}");  // the first word is a command already
  std::string command = continues ? words.front() : io::program_name();
  rest.remove_prefix(continues ? 2 : kProgram.size());
  for (std::size_t i = continues ? 1 : 0; i < words.size(); ++i) {
    const std::size_t place = rest.find("{}");
    command += place == rest.npos ? std::string(rest) + " " : std::string(rest.substr(0, place));
    command += io::shell_word(words[i]);
    rest.remove_prefix(place == rest.npos ? rest.size() : place + 2);
  }
  return {command + std::string(rest), row->why};
}

std::string next_lines(const std::vector<Command>& commands, std::size_t columns) {
  constexpr std::size_t kIndent = 7, kGap = 3;
  std::size_t width = 0, reason = 0;
  for (const auto& [command, why] : commands) {
    width = std::max(width, command.size());
    reason = std::max(reason, why.size());
  }
  const bool beside = kIndent + width + kGap + reason <= columns;  // else the reason is on a separate line
  std::string text = "\n";
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const auto& [command, why] = commands[i];
    text += i == 0 ? "next   " : "       ";
    text += beside ? fmt::format("{:<{}}   {}\n", command, width, why)
                   : fmt::format("{}\n         {}\n", command, why);
  }
  return text;
}

}  // namespace handgrad::view
