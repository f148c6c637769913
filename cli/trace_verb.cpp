// handgrad trace RUN_OR_CONFIG --out FILE and --graph FILE, handgrad trace --compare A B
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "handgrad/cli/config_options.h"
#include "handgrad/cli/terminal.h"
#include "handgrad/cli/verb.h"
#include "handgrad/core/error.h"
#include "handgrad/data/fixed_batch.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/open_run.h"
#include "handgrad/train/run.h"
#include "handgrad/view/next.h"
#include "handgrad/view/text.h"
#include "handgrad/view/trace.h"

namespace handgrad::cli {
namespace {

namespace fs = std::filesystem;

struct TraceRequest {
  ConfigOptions config;
  std::string out, graph, weights, batch;
  std::optional<std::int64_t> depth;
  std::vector<std::string> compare;
  double tolerance = 1e-5;
  bool overwrite = false;
};

int compare(const TraceRequest& request) {
  const view::TraceComparison comparison = view::compare_traces(request.compare[0], request.compare[1]);
  fmt::print("A  {}\nB  {}\n\n{}", request.compare[0], request.compare[1],
             view::text(comparison, request.tolerance));
  return comparison.equal(request.tolerance) ? 0 : 1;
}

void check(const TraceRequest& request) {
  if (request.config.config.empty())
    throw ValueError("trace", "needs a run or a config, or two files to compare", {},
                     io::program_name() + " trace configs/toy.json --out toy.safetensors");
  if (request.out.empty() && request.graph.empty())
    throw ValueError("trace", "needs --out FILE, where the numbers go, or --graph FILE.dot");
  const std::string kind = fs::path(request.graph).extension().string();
  if (!request.graph.empty() && kind != ".dot" && kind != ".svg")
    throw ValueError("trace",
                     fmt::format("--graph must name a .dot or a .svg file, got '{}'", request.graph));
  if (request.depth && request.graph.empty())
    throw ValueError("trace", "--depth belongs to --graph FILE.dot");
  for (const auto& [option, file] : {std::pair{"--out", request.out}, {"--graph", request.graph}})
    if (!file.empty() && fs::exists(file) && !request.overwrite)
      throw Error("trace", fmt::format("{} '{}' exists", option, file), {}, "--overwrite, or another name");
}

void print_numbers(const std::vector<io::NamedArray>& arrays, const std::string& file) {
  fmt::print("{} tensors in {}\n{}", arrays.size(), file,
             view::next_lines({view::suggestion(view::Next::tensor, {file}),
                               view::suggestion(view::Next::other_trace, {file})},
                              terminal_columns()));
}

/// Draws the graph, and says what was drawn.
std::string write_graph(const TraceRequest& request, const view::RecordedGraph& graph,
                        const models::Model& model) {
  const auto parameters = model.named_parameters();
  const view::GraphDrawing drawing = view::draw(graph, parameters, request.config.config, request.depth);
  view::write_graph(drawing, request.graph);
  std::string said = fmt::format("graph of {} operations and {} parameters in {}\n",
                                 graph.operations().size(), parameters.size(), request.graph);
  if (drawing.closed > 0)
    said += fmt::format("drawn as {} boxes: a module deeper than {} is one box; --depth chooses\n",
                        drawing.boxes, *drawing.depth);
  return said;
}

int write_trace(const TraceRequest& request) {
  check(request);
  request.config.apply_threads();
  const fs::path path = request.config.config;
  const std::vector<std::string> sets = request.config.all_sets();
  const std::unique_ptr<train::Run> opened =
      fs::is_directory(path) ? train::open_run(path, {.sets = sets, .weights = request.weights}).run
                             : train::new_run(train::ConfigDocument::load(path, sets), request.weights);
  const train::Run& run = *opened;
  data::Batch batch;
  if (request.batch.empty()) {
    run.data().training->fill(batch, {});
  } else {
    batch = data::read_batch(request.batch, run.model().vocab_size());
  }
  view::RecordedGraph recorded("", view::Record::shapes);
  std::vector<io::NamedArray> arrays;
  if (request.graph.empty()) {
    arrays = view::trace(run.model(), batch);
  } else {
    const GraphObserverGuard guard(recorded);
    arrays = view::trace(run.model(), batch);
  }
  const std::string drawn = request.graph.empty() ? "" : write_graph(request, recorded, run.model());
  if (!request.out.empty()) io::write_safetensors(request.out, arrays);
  const double loss = arrays.front().array.value(0);
  fmt::print("loss {} of {} rows of {} tokens\n{}", std::isnan(loss) ? "NaN" : fmt::format("{:.9g}", loss),
             batch.rows, batch.cols, drawn);
  if (!request.out.empty()) print_numbers(arrays, request.out);
  return 0;
}

}  // namespace

Verb trace_verb() {
  auto request = std::make_shared<TraceRequest>();
  return {
      .name = "trace",
      .purpose = "every number of one forward and backward pass, or its graph; or compare two",
      .group = Group::prove,
      .options = request->config.options(
          false,
          {{"--out", "FILE", "the safetensors file to write", &request->out},
           {"--graph", "FILE.dot|FILE.svg",
            "draw the graph of the pass: operations, parameters and gradient norms, as text for Graphviz, or "
            "with its program dot as a picture",
            &request->graph},
           {"--depth",
            "N",
            "draw a module deeper than N as one box (default: every operation up to 150, else as deep as "
            "leaves 150 boxes)",
            &request->depth,
            {.least = 0, .most = 1000}},
           {"--overwrite", "", "replace the file that is there", &request->overwrite},
           {"--weights", "FILE",
            "the weights of this run, checkpoint or safetensors file (default: the run's last, or first "
            "weights)",
            &request->weights},
           {"--batch", "FILE",
            "a file {\"inputs\": [[...]], \"targets\": [[...]]} (default: the run's first batch)",
            &request->batch},
           {"--compare",
            "A B",
            "two traces: how far each tensor differs; status 1 if too far",
            &request->compare,
            {.values = 2}},
           {"--tolerance",
            "X",
            "what is too far, against the largest number of the tensor (default 1e-5)",
            &request->tolerance,
            {.least = 0}}}),
      .run = [request] { return request->compare.empty() ? write_trace(*request) : compare(*request); }};
}

}  // namespace handgrad::cli
