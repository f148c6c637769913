// A real row of a norm: the operation's own page, with the model's numbers.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/nn/module.h"
#include "handgrad/view/explain/model_row.h"
#include "handgrad/view/explain/page.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

using Json = nlohmann::ordered_json;

/// d loss / d output of the module's first call, complete.
const Array& upstream_of(const ModelPass& pass) {
  const auto& operations = pass.graph.operations();
  for (auto operation = operations.rbegin(); operation != operations.rend(); ++operation)
    if (operation->y.shares_storage(pass.y) && operation->dy.defined()) return operation->dy;
  throw Error("explain", fmt::format("no gradient came to the output of {}", pass.path), {}, "another `row`");
}

std::string model_title(const ModelPass& pass, std::int64_t width) {
  const std::int64_t rows = pass.texts * pass.tokens;
  return fmt::format("{} at step {}, {}; 1 of {}, {}, {}\n{}", pass.path, pass.state.step, pass.place,
                     plural(rows, "row", "rows"), plural(width, "feature", "features"),
                     name_of(pass.y.dtype()), pass.state.origin);
}

/// Before the step: the gradients of all rows, which include the one shown above.
void add_all_rows(Sheet& sheet, const ModelPass& pass, const std::vector<const Parameter*>& parameters) {
  Section s{Part::backward,
            fmt::format("ALL {} of this pass: what training adds up",
                        plural(pass.texts * pass.tokens, "ROW", "ROWS")),
            static_cast<std::size_t>(parameters.front()->numel())};
  for (const Parameter* parameter : parameters) {
    if (parameter->has_grad())
      s.lines.push_back({"", "d " + parameter->name(), {}, parameter->grad().values()});
    else
      s.lines.push_back({"", "d " + parameter->name(), "none: it is frozen"});
  }
  const auto step = std::find_if(sheet.sections.begin(), sheet.sections.end(),
                                 [](const Section& section) { return section.part == Part::step; });
  sheet.sections.insert(step, std::move(s));
}

/// What may be typed after the page.
std::vector<Command> next_of(const ModelRequest& request, const ModelPass& pass) {
  std::vector<Command> next{suggestion(Next::json, {request.command})};
  if (!request.step && pass.state.step < pass.state.last && std::filesystem::is_directory(request.run))
    next.push_back(suggestion(Next::last_step, {request.command, std::to_string(pass.state.last)}));
  return next;
}

/// Whether an operation's page has all parts of the norm.
bool has_page(const nn::NormFormula& norm) {
  return norm.scale != nullptr && (norm.shift != nullptr) == norm.centered;
}

/// The page of a row of the norm.
Explanation explain_norm(const ModelRequest& request, const ModelPass& pass, const nn::NormFormula& norm) {
  const std::int64_t row = pass.b * pass.tokens + pass.t;
  const Parameter &scale = *norm.scale, &last = norm.centered ? *norm.shift : scale;
  std::vector<const Parameter*> parameters{&scale};
  Request typed{.operation = norm.centered ? "layer_norm" : "rms_norm",
                .rows = {row_of(pass.x, row)},
                .dtype = pass.x.dtype()};
  typed.options["scale"] = {scale.values()};
  if (norm.centered) {
    parameters.push_back(norm.shift);
    typed.options["shift"] = {norm.shift->values()};
  }
  typed.options["upstream"] = {row_of(upstream_of(pass), row)};
  typed.options["eps"] = {{norm.eps}};
  typed.options["lr"] = {{request.lr}};
  const ModelNorm model{.title = model_title(pass, scale.numel()),
                        .loss = pass.loss,
                        .output = row_of(pass.y, row),
                        .scale_frozen = scale.frozen(),
                        .shift_frozen = last.frozen()};
  Page page = norm.centered ? layer_norm_page(typed, &model) : rms_norm_page(typed, &model);
  add_all_rows(page.sheet(), pass, parameters);

  Json json{{"module", pass.path},
            {"step", pass.state.step},
            {"origin", pass.state.origin},
            {"row", {pass.b, pass.t}},
            {"token", pass.token}};
  if (const auto step = page.json().find("step"); step != page.json().end()) {
    page.json()["sgd"] = *step;  // here "step" is the run's
    page.json().erase("step");
  }
  json.update(page.json());
  json["model_output"] = json_row(model.output, typed.dtype);
  json["all_rows"] = {{"rows", pass.texts * pass.tokens}};
  for (const Parameter* parameter : parameters)
    if (parameter->has_grad())
      json["all_rows"]["d" + parameter->name()] = json_row(parameter->grad().values(), typed.dtype);
  page.json() = std::move(json);
  return page.finish(next_of(request, pass));
}

}  // namespace

Explanation explain_model(const ModelRequest& request) {
  const ModelPass pass = run_model(request);
  const auto norm = pass.module->norm();
  return norm && has_page(*norm) ? explain_norm(request, pass, *norm) : explain_module(request, pass);
}

}  // namespace handgrad::view::explain
