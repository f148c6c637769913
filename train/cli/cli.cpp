#include "handgrad/train/cli/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "handgrad/core/kernels/table.h"
#include "handgrad/core/parallel.h"
#include "handgrad/nn/config_error.h"
#include "handgrad/train/cli/verbs.h"
#include "handgrad/train/trainer.h"
#include "handgrad/train/version.h"

namespace handgrad::train {
namespace {

constexpr const char* kFiveLines =
    "handgrad trains a GPT and hides nothing.\n"
    "  watch a block learn       handgrad train configs/toy.json\n"
    "  look at scale and shift   handgrad inspect runs/toy scale shift\n"
    "  let it write              handgrad generate runs/toy --prompt \"The \"\n"
    "  everything else           handgrad --help\n";

std::string version_text() {
  return fmt::format("handgrad {} ({}), {}, {}, kernels {}", kVersion, kRevision, kCompiler, kBuildType,
                     kernels::target_name());
}

int report(const std::exception& error, int status) {
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", error.what());
  return status;
}

int run(int argc, char** argv) {
  CLI::App app("A small autograd framework that trains a GPT and hides nothing.", "handgrad");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  cli::Chosen chosen;
  cli::add_train(app, chosen);
  cli::add_inspect(app, chosen);
  cli::add_generate(app, chosen);
  cli::add_bench(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const auto verbs = app.get_subcommands();
    fmt::print(stderr, "{}: {}\n  try: handgrad {}--help\n",
               verbs.empty() ? "handgrad" : verbs.front()->get_name(), error.what(),
               verbs.empty() ? "" : verbs.front()->get_name() + " ");
    return 2;
  }
  if (!chosen.action) {
    fmt::print("{}", kFiveLines);
    return 0;
  }
  return chosen.action();
}

}  // namespace

int run_cli(int argc, char** argv) {
  const FlushSubnormals flush;
  try {
    return run(argc, argv);
  } catch (const nn::ConfigError& error) {
    return report(error, 2);
  } catch (const ValueError& error) {
    return report(error, 2);
  } catch (const std::exception& error) {
    return report(error, 1);
  }
}

}  // namespace handgrad::train
