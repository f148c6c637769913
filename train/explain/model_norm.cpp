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
          .dtype = pass.x.dtype(),
          .scale_frozen = norm.scale.frozen(),
          .shift_frozen = norm.shift.frozen()};
}

std::string model_title(const ModelPass& pass, std::int64_t width) {
  const std::int64_t rows = pass.texts * pass.tokens;
  return fmt::format("{} at step {}, {}; 1 of {}, {}, {}\n{}", pass.path, pass.state.step, pass.place,
                     plural(rows, "row", "rows"), plural(width, "feature", "features"),
                     name_of(pass.y.dtype()), pass.state.origin);
}

/// Before the step: the gradients of all rows, which the one row above is a part of.
void add_all_rows(Sheet& page, const ModelPass& pass, std::initializer_list<const Parameter*> parameters) {
  Section s{Part::backward,
            fmt::format("ALL {} of this pass: what training adds up",
                        plural(pass.texts * pass.tokens, "ROW", "ROWS")),
            static_cast<std::size_t>((*parameters.begin())->numel())};
  for (const Parameter* parameter : parameters) {
    if (parameter->has_grad())
      s.lines.push_back({"", "d " + parameter->name(), {}, parameter->grad().values()});
    else
      s.lines.push_back({"", "d " + parameter->name(), "none: it is frozen"});
  }
  const auto place = std::find_if(page.sections.begin(), page.sections.end(),
                                  [](const Section& section) { return section.part == Part::step; });
  page.sections.insert(place, std::move(s));
}

/// What may be typed after the page.
std::vector<std::pair<std::string, std::string>> next_of(const ModelRequest& request, const ModelPass& pass) {
  std::vector<std::pair<std::string, std::string>> next{
      {request.command + " --json", "every number, in full"}};
  if (!request.step && pass.state.step < pass.state.last && std::filesystem::is_directory(request.run))
    next.emplace_back(fmt::format("{} --step {}", request.command, pass.state.last),
                      "after the last step that was recorded, which is made again");
  return next;
}

/// Which row of which module it is.
Json place_json(const ModelPass& pass) {
  return {{"module", pass.path},
          {"step", pass.state.step},
          {"origin", pass.state.origin},
          {"row", {pass.b, pass.t}},
          {"token", pass.token}};
}

Json all_rows_json(const ModelPass& pass, std::initializer_list<const Parameter*> parameters) {
  Json json{{"rows", pass.texts * pass.tokens}};
  for (const Parameter* parameter : parameters)
    if (parameter->has_grad())
      json["d" + parameter->name()] = json_row(parameter->grad().values(), pass.x.dtype());
  return json;
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
  add_all_rows(page, pass, {&norm.scale, &norm.shift});
  page.next = next_of(request, pass);
  Json json = place_json(pass);
  json.update(to_json(q, a));
  json["model_output"] = json_row(own, q.dtype);
  json["all_rows"] = all_rows_json(pass, {&norm.scale, &norm.shift});
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
  Explanation page = explain_rms_norm(own, norm.scale.frozen());
  page.sheet.title = model_title(pass, norm.scale.numel());
  for (const std::string& line : pass.loss) page.sheet.title += "\n" + line;
  add_all_rows(page.sheet, pass, {&norm.scale});
  page.sheet.next = next_of(request, pass);
  Json json = place_json(pass);
  Json numbers = Json::parse(page.json);
  numbers["sgd"] = std::move(numbers["step"]);  // here "step" is the run's
  numbers.erase("step");
  json.update(numbers);
  json["model_output"] = json_row(row_of(pass.y, row), pass.x.dtype());
  json["all_rows"] = all_rows_json(pass, {&norm.scale});
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
