// handgrad check CONFIG, handgrad check --layer TYPE
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/cli/config_options.h"
#include "handgrad/cli/terminal.h"
#include "handgrad/cli/verb.h"
#include "handgrad/core/error.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/check.h"
#include "handgrad/train/open_run.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CheckRequest {
  ConfigOptions config;
  std::string layer, weights;
  std::int64_t width = 8;
  GradCheckOptions options{.elements = 16};
  bool json = false;
};

Json to_json(const GradCheckReport& report, double tolerance) {
  Json tensors = Json::array();
  for (const GradCheckEntry& t : report.tensors) {
    tensors.push_back({{"name", t.name},
                       {"shape", std::vector<std::int64_t>(t.shape.begin(), t.shape.end())},
                       {"checked", t.checked},
                       {"worst", t.worst},
                       {"gradient", t.gradient},
                       {"difference", t.difference},
                       {"error", t.error},
                       {"ok", t.ok}});
  }
  return {{"ok", report.ok}, {"error", report.error}, {"tolerance", tolerance}, {"tensors", tensors}};
}

/// The layer as the model would have it: its width, and its keys where the model names that layer.
GradCheckReport layer_report(const CheckRequest& request, const Json& model) {
  Json keys = Json::object();
  for (const char* place : {"norm", "ff"})
    if (model.contains(place) && model[place].value("type", "") == request.layer) keys = model[place];
  keys.erase("type");
  return train::check_layer(request.layer, io::Fields(keys), model.value("emb_dim", request.width),
                            request.options);
}

GradCheckReport report_for(const CheckRequest& request) {
  if (request.layer.empty() && request.config.config.empty())
    throw ValueError("check", "needs a config, or --layer and a layer's type", {},
                     io::program_name() + " check configs/toy.json");
  if (request.config.config.empty()) return layer_report(request, Json::object());
  std::vector<std::string> sets = request.config.all_sets();
  sets.push_back("train.dtype=float64");
  const auto run = train::new_run(train::ConfigDocument::load(request.config.config, sets),
                                  request.layer.empty() ? request.weights : "");
  if (!request.layer.empty()) return layer_report(request, run->effective()["model"]);
  return train::check_model(*run, request.options, !request.weights.empty());
}

int check(const CheckRequest& request) {
  request.config.apply_threads();
  const GradCheckReport report = report_for(request);
  if (request.json) {
    fmt::print("{}\n", to_json(report, request.options.tolerance).dump(1));
    return report.ok ? 0 : 1;
  }
  std::int64_t elements = 0, wrong = 0;
  for (const GradCheckEntry& t : report.tensors) {
    elements += t.checked;
    wrong += t.ok ? 0 : 1;
  }
  fmt::print(
      "{}\n\n{}\n",
      view::wrapped(
          "d loss / d parameter by backward, and by finite differences, in float64 with random upstream "
          "numbers",
          0, terminal_columns()),
      report.text());
  fmt::print("{} elements of {}: {}, worst error {:.2e}, allowed {:g}\n", elements,
             view::plural(static_cast<std::int64_t>(report.tensors.size()), "tensor", "tensors"),
             wrong == 0 ? "all right" : view::plural(wrong, "tensor is WRONG", "tensors are WRONG"),
             report.error, request.options.tolerance);
  return report.ok ? 0 : 1;
}

}  // namespace

Verb check_verb() {
  auto request = std::make_shared<CheckRequest>();
  return {
      .name = "check",
      .purpose = "gradients against finite differences, of a config's model or of one layer",
      .group = Group::prove,
      .options = request->config.options(
          false, {{"--layer", "TYPE", "only this layer, by the type a config names it with: layer_norm",
                   &request->layer},
                  {"--width",
                   "N",
                   "the layer's width where no config says it (default 8)",
                   &request->width,
                   {.least = 1}},
                  {"--weights", "FILE", "check with the weights of this run, checkpoint or safetensors file",
                   &request->weights},
                  {"--elements",
                   "N",
                   "how many of each tensor, spread evenly; 0: all (default 16)",
                   &request->options.elements,
                   {.least = 0}},
                  {"--tolerance",
                   "X",
                   "what an error may be (default 1e-6)",
                   &request->options.tolerance,
                   {.least = 0}},
                  {"--json", "", "as JSON", &request->json}}),
      .run = [request] { return check(*request); }};
}

}  // namespace handgrad::cli
