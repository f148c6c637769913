// handgrad manual man, handgrad manual bash: for packagers; not listed by --help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "handgrad/cli/help.h"
#include "handgrad/cli/verbs.h"

namespace handgrad::cli {

void add_manual(CLI::App& app, Chosen& chosen) {
  CLI::App* verb = app.add_subcommand("manual", "the manual page and the completion script")->group("");
  verb->require_subcommand(1);
  verb->add_subcommand("man", "the manual page")->callback([&app, &chosen] {
    chosen.action = [&app] {
      fmt::print("{}", man_page(app));
      return 0;
    };
  });
  verb->add_subcommand("bash", "completion for bash")->callback([&app, &chosen] {
    chosen.action = [&app] {
      fmt::print("{}", bash_completion(app));
      return 0;
    };
  });
}

}  // namespace handgrad::cli
