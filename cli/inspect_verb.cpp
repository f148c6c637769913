// handgrad inspect RUN_OR_FILE [NAME]...
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "handgrad/cli/terminal.h"
#include "handgrad/cli/verbs.h"
#include "handgrad/view/inspect.h"

namespace handgrad::cli {

void add_inspect(CLI::App& app, Chosen& chosen) {
  struct Request {
    std::string path, format = "table", of = "value";
    view::InspectOptions options;
  };
  auto request = std::make_shared<Request>();
  view::InspectOptions& options = request->options;
  CLI::App* verb =
      app.add_subcommand("inspect", "show scale, shift or any parameter after each step")->group("look");
  verb->add_option("run", request->path, "a run's folder, or a safetensors file")
      ->option_text("RUN_OR_FILE")
      ->required();
  verb->add_option(
          "names", options.names,
          "names, parts of names (scale, norm1), or patterns ('*.scale'); what was not recorded comes from "
          "the checkpoints")
      ->option_text("NAME");
  verb->add_option(
          "--of", request->of,
          "value (default), gradient, update, or the optimizer's first_moment or second_moment, which "
          "checkpoints hold")
      ->option_text("WHAT")
      ->check(one_of(train::quantity_names()));
  verb->add_option("--step", options.steps,
                   "one step, a range 1:5 (5 included), or last (default: the whole run)")
      ->option_text("N|A:B|last");
  verb->add_flag("--values", options.values, "every number, not only mean, std, min and max");
  verb->add_flag("--all", options.all, "every feature in a ranking");
  verb->add_flag("--ascii", options.ascii, "no characters beyond ASCII");
  verb->add_option("--format", request->format, "table, csv (one line for each step, name and index) or json")
      ->option_text("FORMAT")
      ->check(one_of({"table", "csv", "json"}));
  verb->add_flag_callback(
      "--json", [request] { request->format = "json"; }, "short for --format json");
  verb->callback([request, &chosen] {
    chosen.action = [request] {
      using Format = view::InspectOptions::Format;
      request->options.format = request->format == "csv"    ? Format::csv
                                : request->format == "json" ? Format::json
                                                            : Format::table;
      const auto& words = train::quantity_names();
      request->options.of =
          static_cast<train::Quantity>(std::find(words.begin(), words.end(), request->of) - words.begin());
      request->options.columns = terminal_columns();
      view::inspect(request->path, request->options, std::cout);
      return std::cout.flush() ? 0 : 1;
    };
  });
}

}  // namespace handgrad::cli
