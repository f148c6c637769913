// handgrad inspect RUN_OR_FILE [NAME]...
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "handgrad/cli/terminal.h"
#include "handgrad/cli/verb.h"
#include "handgrad/view/inspect.h"

namespace handgrad::cli {

namespace {

struct InspectRequest {
  std::string path, format = "table", of = "value";
  view::InspectOptions options;
};

int inspect(InspectRequest& request) {
  using Format = view::InspectOptions::Format;
  request.options.format = request.format == "csv"    ? Format::csv
                           : request.format == "json" ? Format::json
                                                      : Format::table;
  const auto& words = train::quantity_names();
  request.options.of =
      static_cast<train::Quantity>(std::find(words.begin(), words.end(), request.of) - words.begin());
  request.options.columns = terminal_columns();
  view::inspect(request.path, request.options, std::cout);
  return std::cout.flush() ? 0 : 1;
}

}  // namespace

Verb inspect_verb() {
  auto request = std::make_shared<InspectRequest>();
  view::InspectOptions& options = request->options;
  return {
      .name = "inspect",
      .purpose = "show scale, shift or any parameter after each step",
      .group = Group::look,
      .options = {{"run",
                   "RUN_OR_FILE",
                   "a run's folder, or a safetensors file",
                   &request->path,
                   {.required = true}},
                  {"names", "NAME",
                   "names, parts of names (scale, norm1), or patterns ('*.scale'); what was not recorded "
                   "comes from the checkpoints",
                   &options.names},
                  {"--of",
                   "WHAT",
                   "value (default), gradient, update, or the optimizer's first_moment or second_moment, "
                   "which checkpoints hold",
                   &request->of,
                   {.choices = train::quantity_names()}},
                  {"--step", "N|A:B|last",
                   "one step, a range 1:5 (5 included), or last (default: the whole run)", &options.steps},
                  {"--values", "", "every number, not only mean, std, min and max", &options.values},
                  {"--all", "", "every feature in a ranking", &options.all},
                  {"--ascii", "", "no characters beyond ASCII", &options.ascii},
                  {"--format",
                   "FORMAT",
                   "table, csv (one line for each step, name and index) or json",
                   &request->format,
                   {.choices = {"table", "csv", "json"}}},
                  {"--json", "", "short for --format json", [request] { request->format = "json"; }}},
      .run = [request] { return inspect(*request); }};
}

}  // namespace handgrad::cli
