// handgrad inspect RUN_OR_FILE [NAME]...
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "handgrad/train/cli/verbs.h"
#include "handgrad/train/inspect.h"

namespace handgrad::train::cli {

void add_inspect(CLI::App& app, Chosen& chosen) {
  struct Request {
    std::string path;
    InspectOptions options;
  };
  auto request = std::make_shared<Request>();
  InspectOptions& options = request->options;
  CLI::App* verb =
      app.add_subcommand("inspect", "show scale, shift or any recorded parameter after each step")
          ->group("look");
  verb->add_option("run", request->path, "a run's folder, or a safetensors file")
      ->option_text("RUN_OR_FILE")
      ->required();
  verb->add_option("names", options.names, "names, ends of names (scale), or patterns ('*.scale')")
      ->option_text("NAME");
  verb->add_option("--step", options.steps,
                   "one step, a range 1:5 (5 included), or last (default: the whole run)")
      ->option_text("N|A:B|last");
  verb->add_flag("--values", options.values, "every number, not only mean, std, min and max");
  verb->add_flag("--all", options.all, "every feature in a ranking");
  verb->add_flag("--ascii", options.ascii, "no characters beyond ASCII");
  const std::map<std::string, InspectOptions::Format> formats{{"table", InspectOptions::Format::table},
                                                              {"csv", InspectOptions::Format::csv},
                                                              {"json", InspectOptions::Format::json}};
  verb->add_option("--format", options.format, "table, csv (one line for each step, name and index) or json")
      ->option_text("FORMAT")
      ->transform(CLI::CheckedTransformer(formats, CLI::ignore_case));
  verb->add_flag_callback(
      "--json", [&options] { options.format = InspectOptions::Format::json; }, "short for --format json");
  verb->callback([request, &chosen] {
    chosen.action = [request] {
      inspect(request->path, request->options, std::cout);
      return std::cout.flush() ? 0 : 1;
    };
  });
}

}  // namespace handgrad::train::cli
