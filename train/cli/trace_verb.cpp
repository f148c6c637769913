// handgrad trace RUN_OR_CONFIG --out FILE, handgrad trace --compare A B
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "handgrad/core/error.h"
#include "handgrad/data/fixed_batch.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/cli/terminal.h"
#include "handgrad/train/cli/verbs.h"
#include "handgrad/train/program_name.h"
#include "handgrad/train/run.h"
#include "handgrad/train/text.h"
#include "handgrad/train/trace.h"

namespace handgrad::train::cli {
namespace {

namespace fs = std::filesystem;

struct Request {
  ConfigOptions config;
  std::string out, weights, batch;
  std::vector<std::string> compare;
  double tolerance = 1e-5;
  bool overwrite = false;
};

int compare(const Request& request) {
  const TraceComparison comparison = compare_traces(request.compare[0], request.compare[1]);
  fmt::print("A  {}\nB  {}\n\n{}", request.compare[0], request.compare[1],
             text(comparison, request.tolerance));
  return comparison.equal(request.tolerance) ? 0 : 1;
}

int write_trace(const Request& request) {
  if (request.config.config.empty())
    throw ValueError("trace", "needs a run or a config, or two files to compare", {},
                     program_name() + " trace configs/toy.json --out toy.safetensors");
  if (request.out.empty()) throw ValueError("trace", "needs --out FILE, where the numbers go");
  if (fs::exists(request.out) && !request.overwrite)
    throw Error("trace", fmt::format("--out '{}' is there already", request.out), {},
                "--overwrite, or another name");
  request.config.apply_threads();
  const fs::path path = request.config.config;
  const bool is_run = fs::is_directory(path);
  RunContext context;
  std::string weights = request.weights;
  if (is_run) {
    const fs::path checkpoint = checkpoint_of(path);
    context.tokenizer = read_checkpoint_state(checkpoint).tokenizer;
    if (weights.empty()) weights = checkpoint.string();
  }
  const Run run(ConfigDocument::load(is_run ? path / "config.json" : path, request.config.all_sets()),
                context);
  if (!weights.empty()) load_weights(weights, run.model());
  data::Batch batch;
  if (request.batch.empty()) {
    run.data().training->fill(batch, {});
  } else {
    batch = data::read_batch(request.batch, run.model().vocab_size());
  }
  const auto arrays = trace(run.model(), batch);
  nn::write_safetensors(request.out, arrays);
  fmt::print(
      "loss {:.9g} of {} rows of {} tokens\n{} tensors in {}\n{}", arrays.front().array.value(0), batch.rows,
      batch.cols, arrays.size(), request.out,
      next_lines(
          {{fmt::format("{} inspect {} norm1 --values", program_name(), shell_word(request.out)),
            "one of its tensors"},
           {fmt::format("{} trace --compare {} OTHER.safetensors", program_name(), shell_word(request.out)),
            "where another one departs"}},
          terminal_columns()));
  return 0;
}

}  // namespace

void add_trace(CLI::App& app, Chosen& chosen) {
  auto request = std::make_shared<Request>();
  CLI::App* verb =
      app.add_subcommand("trace", "every number of one forward and backward pass, in a file; or compare two")
          ->group("prove");
  request->config.add_to(*verb, false);
  verb->add_option("--out", request->out, "the safetensors file to write")->option_text("FILE");
  verb->add_flag("--overwrite", request->overwrite, "replace the file that is there");
  verb->add_option("--weights", request->weights,
                   "the weights of this run, checkpoint or safetensors file (default: the run's last, or "
                   "first weights)")
      ->option_text("FILE");
  verb->add_option("--batch", request->batch,
                   "a file {\"inputs\": [[...]], \"targets\": [[...]]} (default: the run's first batch)")
      ->option_text("FILE");
  verb->add_option("--compare", request->compare,
                   "two traces: how far each tensor differs; status 1 if too far")
      ->option_text("A B")
      ->expected(2);
  verb->add_option("--tolerance", request->tolerance,
                   "what is too far, against the largest number of the tensor (default 1e-5)")
      ->option_text("X")
      ->check(at_least(0));
  verb->callback([request, &chosen] {
    chosen.action = [request] {
      return request->compare.empty() ? write_trace(*request) : compare(*request);
    };
  });
}

}  // namespace handgrad::train::cli
