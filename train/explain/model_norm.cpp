// A real row of a norm: the operation's own page, with the model's numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/nn/layer_norm.h"
#include "handgrad/nn/rms_norm.h"
#include "handgrad/train/explain/layer_norm.h"
#include "handgrad/train/explain/model_row.h"
#include "handgrad/train/explain/page.h"
#include "handgrad/train/explain/sheets.h"
#include "handgrad/train/text.h"

namespace handgrad::train::explain {
namespace {

using Json = nlohmann::ordered_json;

/// d loss / d output of the module's first call, complete.
const Array& upstream_of(const ModelPass& pass) {
  const auto& operations = pass.graph.operations();
  for (auto operation = operations.rbegin(); operation != operations.rend(); ++operation)
    if (operation->y.shares_storage(pass.y) && operation->dy.defined()) return operation->dy;
  throw Error("explain", fmt::format("no gradient came to the output of {}", pass.path), {}, "another --row");
}

double largest_difference(const Row& a, const Row& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

LayerNormQuestion question_of(const ModelRequest& request, const ModelPass& pass, const nn::LayerNorm& norm) {
  const std::int64_t row = pass.b * pass.tokens + pass.t;
  return {.rows = {row_of(pass.x, row)},
          .scale = norm.scale.values(),
          .shift = norm.shift.values(),
          .upstream = {row_of(upstream_of(pass), row)},
          .eps = norm.eps(),
          .lr = request.lr,
          .dtype = pass.x.dtype()};
}

std::string model_title(const ModelPass& pass, std::int64_t width) {
  const std::int64_t rows = pass.texts * pass.tokens;
  return fmt::format("{} at step {}, {}; 1 of {}, {}, {}\n{}", pass.path, pass.state.step, pass.place,
                     plural(rows, "row", "rows"), plural(width, "feature", "features"),
                     name_of(pass.y.dtype()), pass.state.origin);
}

/// The gradients of all rows, which the one row above is a part of.
Section all_rows(const ModelPass& pass, const nn::LayerNorm& norm) {
  Section s{Part::backward,
            fmt::format("ALL {} of this pass: what training adds up",
                        plural(pass.texts * pass.tokens, "ROW", "ROWS")),
            static_cast<std::size_t>(norm.scale.numel())};
  for (const Parameter* parameter : {&norm.scale, &norm.shift})
    if (parameter->has_grad())
      s.lines.push_back({"", "d " + parameter->name(), {}, parameter->grad().values()});
  return s;
}

Explanation explain_norm(const ModelRequest& request, const ModelPass& pass, const nn::LayerNorm& norm) {
  const LayerNormQuestion q = question_of(request, pass, norm);
  const LayerNormAnswer a = answer(q);
  const Row own = row_of(pass.y, pass.b * pass.tokens + pass.t);
  const LayerNormWording wording{.title = model_title(pass, norm.scale.numel()),
                                 .loss = pass.loss,
                                 .real = true,
                                 .model_difference = largest_difference(own, a.with_eps[0].output),
                                 .lr_note = ", with this row alone"};
  Sheet page = sheet(q, a, wording);
  const auto place = std::find_if(page.sections.begin(), page.sections.end(),
                                  [](const Section& s) { return s.part == Part::step; });
  page.sections.insert(place, all_rows(pass, norm));
  page.next = {{request.command + " --json", "every number, in full"}};
  Json json = {{"module", pass.path},
               {"step", pass.state.step},
               {"origin", pass.state.origin},
               {"row", {pass.b, pass.t}},
               {"token", pass.token}};
  json.update(to_json(q, a));
  json["model_output"] = json_row(own, q.dtype);
  json["all_rows"] = {{"rows", pass.texts * pass.tokens}};
  if (norm.scale.has_grad()) json["all_rows"]["dscale"] = json_row(norm.scale.grad().values(), q.dtype);
  if (norm.shift.has_grad()) json["all_rows"]["dshift"] = json_row(norm.shift.grad().values(), q.dtype);
  return {std::move(page), json_text(json), python(q, a)};
}

/// The same for the norm without mean and shift.
Explanation explain_norm(const ModelRequest& request, const ModelPass& pass, const nn::RMSNorm& norm) {
  const std::int64_t row = pass.b * pass.tokens + pass.t;
  Request own{.operation = "rms_norm", .rows = {row_of(pass.x, row)}, .dtype = pass.x.dtype()};
  own.lists["scale"] = {norm.scale.values()};
  own.lists["upstream"] = {row_of(upstream_of(pass), row)};
  own.lists["eps"] = {Row{norm.eps()}};
  own.lists["lr"] = {Row{request.lr}};
  Explanation page = explain_rms_norm(own);
  page.sheet.title = model_title(pass, norm.scale.numel());
  for (const std::string& line : pass.loss) page.sheet.title += "\n" + line;
  page.sheet.next = {{request.command + " --json", "every number, in full"}};
  Json json = {{"module", pass.path},
               {"step", pass.state.step},
               {"origin", pass.state.origin},
               {"row", {pass.b, pass.t}},
               {"token", pass.token}};
  Json numbers = Json::parse(page.json);
  numbers["sgd"] = std::move(numbers["step"]);  // here "step" is the run's
  numbers.erase("step");
  json.update(numbers);
  page.json = json_text(json);
  return page;
}

}  // namespace

Explanation explain_model(const ModelRequest& request) {
  const ModelPass pass = run_model(request);
  if (const auto* norm = dynamic_cast<const nn::LayerNorm*>(pass.module))
    return explain_norm(request, pass, *norm);
  if (const auto* norm = dynamic_cast<const nn::RMSNorm*>(pass.module))
    return explain_norm(request, pass, *norm);
  return explain_module(request, pass);
}

}  // namespace handgrad::train::explain
