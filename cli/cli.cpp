#include "handgrad/cli/cli.h"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>

#include "handgrad/cli/verb.h"
#include "handgrad/core/kernels/targets.h"
#include "handgrad/core/parallel.h"
#include "handgrad/io/json_text.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/trainer.h"
#include "handgrad/train/version.h"
#include "handgrad/view/next.h"

namespace handgrad::cli {
namespace {

/// What `handgrad` alone says: one line for each thing to do with it.
std::string five_lines() {
  using view::Next;
  std::string text = "handgrad trains a GPT and hides nothing.\n";
  for (const Next next : {Next::train_toy, Next::inspect_toy, Next::generate_toy, Next::help}) {
    const auto [command, why] = view::suggestion(next);
    text += fmt::format("  {:<24}  {}\n", why, command);
  }
  return text;
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
  fmt::print(stderr, "{}\n", error_text(error));
  return status;
}

}  // namespace

int run_cli(int argc, char** argv) {
  const FlushSubnormals flush;
  try {
    find_program_name(argc > 0 ? argv[0] : "handgrad");
    const int status = run_command_line(program(), five_lines(), version_text(), argc, argv);
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
