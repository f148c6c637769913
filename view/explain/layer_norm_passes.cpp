#include "handgrad/view/explain/layer_norm_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "handgrad/core/ops.h"
#include "handgrad/optim/sgd.h"
#include "handgrad/view/explain/page.h"

namespace handgrad::view::explain {
using Json = nlohmann::ordered_json;

LayerNormOperands::LayerNormOperands(const Request& request)
    : width(request.rows.front().size()),
      scale(row_option(request, "scale", width, 1, "feature of x")),
      shift(row_option(request, "shift", width, 0, "feature of x")),
      upstream(upstream_option(request, request.rows.size(), width)),
      eps(number_option(request, "eps", 1e-5, 0)),
      lr(number_option(request, "lr", 0.1, 0)) {}

LayerNormPass::LayerNormPass(const Request& request, const LayerNormOperands& o, std::size_t row, double eps)
    : x(leaf(request.rows[row], request.dtype)),
      recorded(record_graph([&] {
        layer_norm_composed(x, leaf(o.scale, request.dtype), leaf(o.shift, request.dtype), eps)
            .backward(leaf(o.upstream[row], request.dtype).array());
      })),
      g(recorded) {
  const NoGrad no_grad;
  const Tensor upstream = leaf(o.scale, request.dtype) * Tensor::constant(g.output.dy),
               n = Tensor::constant(g.normalized.y);
  const Tensor mean_term = -mean(upstream, kLast, KeepDim::yes),
               projection = -(n * mean(upstream * n, kLast, KeepDim::yes));
  const Tensor terms = upstream + mean_term + projection;
  gradient = upstream.array();
  minus_mean = expand(mean_term, upstream.shape()).array();
  minus_projection = projection.array();
  sum_of_terms = terms.array();
  dx_by_formula = (terms / g.deviation.y.item()).array();
}

LayerNormPasses::LayerNormPasses(const Request& request, const LayerNormOperands& o, double eps)
    : scale("scale", leaf(o.scale, request.dtype)),
      shift("shift", leaf(o.shift, request.dtype)),
      output(layer_norm_composed(leaf(request.rows, request.dtype), scale, shift, eps)) {
  for (std::size_t row = 0; row < request.rows.size(); ++row) each.emplace_back(request, o, row, eps);
  output.backward(leaf(o.upstream, request.dtype).array());
  d_scale = scale.grad();
  d_shift = shift.grad();
}

LayerNormStep layer_norm_step(const Request& request, const LayerNormOperands& o, LayerNormPasses& passes,
                              bool scale_frozen, bool shift_frozen) {
  const NoGrad no_grad;
  const auto loss_of = [&](const Tensor& output) {
    return sum(output * leaf(o.upstream, request.dtype)).item();
  };
  LayerNormStep step;
  step.loss_before = loss_of(passes.output.detach());
  if (scale_frozen) passes.scale.freeze();
  if (shift_frozen) passes.shift.freeze();
  optim::Sgd sgd({{"scale", &passes.scale, nullptr}, {"shift", &passes.shift, nullptr}}, {.lr = o.lr});
  sgd.step(o.lr);
  const Tensor output =
      layer_norm_composed(leaf(request.rows, request.dtype), passes.scale, passes.shift, o.eps);
  step.output = output.array();
  step.loss_after = loss_of(output);
  return step;
}

// ---- JSON

namespace {

/// Numbers of one element type for JSON.
struct JsonOf {
  DType dtype;
  Json operator()(double number) const { return json_number(number, dtype); }
  Json operator()(const Numbers& numbers) const { return json_row(numbers, dtype); }
  Json operator()(const Array& numbers) const { return json_row(numbers.values(), dtype); }
};

Json backward_json(const JsonOf& of, const LayerNormPasses& passes) {
  Json json{{"upstream", Json::array()}, {"dscale", of(passes.d_scale)}, {"dshift", of(passes.d_shift)}};
  for (const LayerNormPass& p : passes.each) {
    json["upstream"].push_back(of(p.g.output.dy));
    json["d_normalized"].push_back(of(p.g.scaled.d_input[1]));
    json["d_centered_by_division"].push_back(of(p.g.normalized.d_input[0]));
    json["d_deviation"].push_back(of(p.g.deviation.dy.item()));
    json["d_variance"].push_back(of(p.g.variance.dy.item()));
    json["d_squared"].push_back(of(p.g.variance.d_input[0]));
    json["d_centered_by_squared"].push_back(of(p.g.squared.d_input[0]));
    json["d_centered"].push_back(of(p.g.centered.dy));
    json["d_mean"].push_back(of(p.g.mean.dy.item()));
    json["dx_by_centered"].push_back(of(p.g.centered.d_input[0]));
    json["dx_by_mean"].push_back(of(p.g.mean.d_input[0]));
    json["dx"].push_back(of(p.x.grad()));
    json["dx_terms"].push_back(Json::array({of(p.gradient), of(p.minus_mean), of(p.minus_projection)}));
    json["dx_by_formula"].push_back(of(p.dx_by_formula));
  }
  return json;
}

}  // namespace

Json layer_norm_json(const Request& request, const LayerNormOperands& o, const LayerNormPasses& with_eps,
                     const LayerNormPasses& without_eps, const LayerNormStep& step) {
  const JsonOf of{request.dtype}, exact{DType::float64};
  Json rows = Json::array(), output = Json::array();
  for (std::size_t row = 0; row < request.rows.size(); ++row) {
    const LayerNormGraph &g = with_eps.each[row].g, &without = without_eps.each[row].g;
    rows.push_back({{"x", of(request.rows[row])},
                    {"mean", of(g.mean.y.item())},
                    {"centered", of(g.centered.y)},
                    {"squared", of(g.squared.y)},
                    {"variance", of(g.variance.y.item())},
                    {"deviation_without_eps", of(without.deviation.y.item())},
                    {"normalized_without_eps", of(without.normalized.y)},
                    {"deviation", of(g.deviation.y.item())},
                    {"normalized", of(g.normalized.y)},
                    {"output", of(g.output.y)}});
    output.push_back(of(row_of(step.output, row)));
  }
  return {{"eps", exact(o.eps)},
          {"scale", of(o.scale)},
          {"shift", of(o.shift)},
          {"rows", rows},
          {"backward", backward_json(of, with_eps)},
          {"backward_without_eps", backward_json(of, without_eps)},
          {"sgd",
           {{"lr", exact(o.lr)},
            {"scale", of(with_eps.scale.array())},
            {"shift", of(with_eps.shift.array())},
            {"output", output},
            {"loss_before", of(step.loss_before)},
            {"loss_after", of(step.loss_after)}}}};
}

// ---- Python

bool all_are(const Numbers& numbers, double value) {
  return std::all_of(numbers.begin(), numbers.end(), [&](double v) { return v == value; });
}

namespace {

/// "torch.ones(4" for the numbers that a norm starts with, else "torch.tensor([...]".
std::string python_start(const Numbers& row, double start, const char* name) {
  return all_are(row, start) ? fmt::format("torch.{}({}", name, row.size())
                             : "torch.tensor(" + python_list(row);
}

}  // namespace

std::string layer_norm_python(const Request& request, const LayerNormOperands& o,
                              const LayerNormPasses& passes) {
  // What each row gives, separated by slashes.
  const auto expected = [&](const auto& text_of) {
    std::string text;
    for (const LayerNormPass& pass : passes.each) text += (text.empty() ? "" : " / ") + text_of(pass.g, pass);
    return text;
  };
  using G = LayerNormGraph;
  using P = LayerNormPass;
  const std::string type = fmt::format("dtype=torch.{}", name_of(request.dtype));
  return python_head() + python_leaf("x", python_rows(request.rows), request.dtype) +
         fmt::format("scale = {}, {}, requires_grad=True)\n", python_start(o.scale, 1, "ones"), type) +
         fmt::format("shift = {}, {}, requires_grad=True)\n", python_start(o.shift, 0, "zeros"), type) +
         python_line("mean = x.mean(dim=-1, keepdim=True)",
                     expected([](const G& g, const P&) { return number_text(g.mean.y.item()); })) +
         python_line("var = x.var(dim=-1, keepdim=True, unbiased=False)",
                     expected([](const G& g, const P&) { return number_text(g.variance.y.item()); })) +
         python_line(fmt::format("norm_x = (x - mean) / torch.sqrt(var + {})", o.eps),
                     expected([](const G& g, const P&) { return signed_row(g.normalized.y.values()); })) +
         python_line("y = scale * norm_x + shift",
                     expected([](const G& g, const P&) { return signed_row(g.output.y.values()); })) +
         python_backward("y", o.upstream, request.dtype) +
         python_line("print(scale.grad)", signed_row(passes.d_scale.values())) +
         python_line("print(shift.grad)", signed_row(passes.d_shift.values())) +
         python_line("print(x.grad)",
                     expected([](const G&, const P& p) { return signed_row(p.x.grad().values()); }));
}

}  // namespace handgrad::view::explain
