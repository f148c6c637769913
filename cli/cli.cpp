#include "handgrad/cli/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "handgrad/cli/help.h"
#include "handgrad/cli/verbs.h"
#include "handgrad/core/kernels/targets.h"
#include "handgrad/core/parallel.h"
#include "handgrad/io/config_error.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/trainer.h"
#include "handgrad/train/version.h"

namespace handgrad::cli {
namespace {

/// What `handgrad` alone says: one line for each thing to do with it.
std::string five_lines() {
  return fmt::format(
      "handgrad trains a GPT and hides nothing.\n"
      "  watch a block learn       {0} train configs/toy.json\n"
      "  look at scale and shift   {0} inspect runs/toy scale shift\n"
      "  let it write              {0} generate runs/toy --prompt \"The \"\n"
      "  everything else           {0} --help\n",
      io::program_name());
}

/// The name by which this program was called. ./dev, which calls it, passes its name in the environment.
void find_program_name(const char* called_as) {
  if (const char* front_door = std::getenv("HANDGRAD_CALLED_AS"); front_door != nullptr && *front_door != 0)
    return io::set_program_name(front_door);
  if (std::filesystem::path(called_as).filename() != "handgrad") io::set_program_name(called_as);
}

std::string version_text() {
  return fmt::format("handgrad {} ({}), {}, {}, kernels {}", train::kVersion, train::kRevision,
                     train::kCompiler, train::kBuildType, kernels::target_name());
}

int report(const std::exception& error, int status) {
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", error.what());
  return status;
}

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

int run(int argc, char** argv) {
  CLI::App app("A small autograd framework that trains a GPT on a CPU and hides nothing.", "handgrad");
  app.set_help_flag("-h,--help", "this text");
  app.set_version_flag("--version", version_text(), "what this program is");
  app.require_subcommand(0, 1);
  app.formatter_fn(
      [](const CLI::App* command, std::string, CLI::AppFormatMode) { return help_text(*command); });
  Chosen chosen;
  add_inspect(app, chosen);
  add_explain(app, chosen);
  add_report(app, chosen);
  add_generate(app, chosen);
  add_layers(app, chosen);
  add_train(app, chosen);
  add_config(app, chosen);
  add_check(app, chosen);
  add_trace(app, chosen);
  add_bench(app, chosen);
  add_manual(app, chosen);
  try {
    app.parse(arguments(argc, argv));
    throw_empty_values(app);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "{}", usage_message(app, error));
    return 2;
  }
  if (!chosen.action) {
    fmt::print("{}", five_lines());
    return 0;
  }
  return chosen.action();
}

}  // namespace

int run_cli(int argc, char** argv) {
  const FlushSubnormals flush;
  try {
    find_program_name(argc > 0 ? argv[0] : "handgrad");
    const int status = run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      fmt::print(stderr, "standard output could not be written\n");
      return status == 0 ? 1 : status;
    }
    return status;
  } catch (const io::ConfigError& error) {
    return report(error, 2);
  } catch (const ValueError& error) {
    return report(error, 2);
  } catch (const std::exception& error) {
    return report(error, 1);
  }
}

}  // namespace handgrad::cli
