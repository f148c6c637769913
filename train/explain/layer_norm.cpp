#include "handgrad/train/explain/layer_norm.h"

#include <nlohmann/json.hpp>

#include "handgrad/core/ops.h"
#include "handgrad/core/parameter.h"
#include "handgrad/train/explain/layer_norm_graph.h"
#include "handgrad/train/explain/page.h"
#include "handgrad/train/explain/sheets.h"
#include "handgrad/train/sgd.h"

namespace handgrad::train::explain {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Row> rows_of(const Tensor& tensor) {
  const Row all = tensor.values();
  const auto width = static_cast<std::ptrdiff_t>(tensor.size(kLast));
  std::vector<Row> rows;
  for (auto at = all.begin(); at != all.end(); at += width) rows.emplace_back(at, at + width);
  return rows;
}

/// The closed form's terms, by the engine's operations on what the graph holds.
void add_closed_form(LayerNormPass& pass, const Tensor& scale, const Array& dy, const Array& normalized) {
  const NoGrad no_grad;
  const Tensor g = scale * Tensor::constant(dy), n = Tensor::constant(normalized);
  const Tensor second = -mean(g, kLast, KeepDim::yes), third = -(n * mean(g * n, kLast, KeepDim::yes));
  pass.g = g.values();
  pass.sum_g = sum(g).item();
  pass.minus_mean_g = expand(second, g.shape()).values();
  pass.minus_projection = third.values();
  const Tensor terms = g + second + third;
  pass.sum_of_terms = terms.values();
  pass.d_x_by_formula = (terms / pass.deviation).values();
}

/// Reads the graph of layer_norm_composed of one row.
LayerNormPass read(const RecordedGraph& graph, const Tensor& x, const Tensor& scale) {
  const auto& [mean, centered, squared, variance, under_root, deviation, normalized, scaled, output] =
      LayerNormOperations(graph);
  LayerNormPass pass;
  pass.mean = mean.y.item();
  pass.centered = centered.y.values();
  pass.squared = squared.y.values();
  pass.variance = variance.y.item();
  pass.under_root = under_root.y.item();
  pass.deviation = deviation.y.item();
  pass.normalized = normalized.y.values();
  pass.output = output.y.values();

  pass.d_output = output.dy.values();
  pass.d_shift = output.given[1].values();
  pass.d_scale = scaled.given[0].values();
  pass.d_normalized = scaled.given[1].values();
  pass.d_centered_direct = normalized.given[0].values();
  pass.d_deviation = deviation.dy.item();
  pass.d_variance = variance.dy.item();
  pass.d_squared = variance.given[0].values();
  pass.d_centered_by_squared = squared.given[0].values();
  pass.d_centered = centered.dy.values();
  pass.d_x_direct = centered.given[0].values();
  pass.d_mean = mean.dy.item();
  pass.d_x_by_mean = mean.given[0].values();
  pass.d_x = x.grad().values();
  {
    const NoGrad no_grad;  // sums that a person writes down and the graph passes over
    pass.sum = sum(x).item();
    pass.sum_of_squared = sum(Tensor::constant(squared.y)).item();
    pass.d_deviation_sum = sum(Tensor::constant(scaled.given[1]) * Tensor::constant(centered.y)).item();
  }
  add_closed_form(pass, scale, output.dy, normalized.y);
  return pass;
}

/// One row through the composed layer_norm, forward and backward.
LayerNormPass pass_of(const LayerNormQuestion& q, std::size_t row, double eps) {
  const Tensor x = leaf(q.rows[row], q.dtype), scale = leaf(q.scale, q.dtype), shift = leaf(q.shift, q.dtype);
  RecordedGraph graph;
  const GraphObserverGuard guard(graph);
  layer_norm_composed(x, scale, shift, eps).backward(leaf(q.upstream[row], q.dtype).array());
  return read(graph, x, scale);
}

/// All rows at once with parameters, so that their gradients add up as in training.
Tensor run_all(const LayerNormQuestion& q, const Parameter& scale, const Parameter& shift, double eps) {
  const Tensor output = layer_norm_composed(leaf(q.rows, q.dtype), scale, shift, eps);
  output.backward(leaf(q.upstream, q.dtype).array());
  return output;
}

double loss_of(const LayerNormQuestion& q, const Tensor& output) {
  return sum(output.detach() * leaf(q.upstream, q.dtype)).item();
}

}  // namespace

LayerNormAnswer answer(const LayerNormQuestion& q) {
  LayerNormAnswer a;
  for (std::size_t row = 0; row < q.rows.size(); ++row) {
    a.without_eps.push_back(pass_of(q, row, 0));
    a.with_eps.push_back(pass_of(q, row, q.eps));
  }
  {
    const Parameter scale("scale", leaf(q.scale, q.dtype)), shift("shift", leaf(q.shift, q.dtype));
    run_all(q, scale, shift, 0);
    a.d_scale_without_eps = scale.grad().values();
    a.d_shift_without_eps = shift.grad().values();
  }
  Parameter scale("scale", leaf(q.scale, q.dtype)), shift("shift", leaf(q.shift, q.dtype));
  a.loss = loss_of(q, run_all(q, scale, shift, q.eps));
  a.d_scale = scale.grad().values();
  a.d_shift = shift.grad().values();
  if (q.scale_frozen) scale.freeze();
  if (q.shift_frozen) shift.freeze();
  Sgd sgd({{"scale", &scale, nullptr}, {"shift", &shift, nullptr}}, {.lr = q.lr});
  sgd.step(q.lr);
  a.new_scale = scale.values();
  a.new_shift = shift.values();
  const NoGrad no_grad;
  const Tensor output = layer_norm_composed(leaf(q.rows, q.dtype), scale, shift, q.eps);
  a.new_output = rows_of(output);
  a.new_loss = loss_of(q, output);
  return a;
}

Explanation explain_layer_norm(const Request& request) {
  const std::size_t width = request.rows.front().size();
  LayerNormQuestion q{.rows = request.rows,
                      .scale = row_option(request, "scale", width, 1, "feature of x"),
                      .shift = row_option(request, "shift", width, 0, "feature of x"),
                      .upstream = upstream_option(request, request.rows.size(), width),
                      .eps = number_option(request, "eps", 1e-5, 0),
                      .lr = number_option(request, "lr", 0.1, 0),
                      .dtype = request.dtype};
  const LayerNormAnswer a = answer(q);
  Sheet page = sheet(q, a);
  const std::string& command = request.command;
  const std::string explain = command.substr(0, command.find(" layer_norm") + 11);
  if (command == explain + " 2 2 6 6") {
    page.next = {{explain + " 1 7 9 15", "unequal distances, still exact"},
                 {explain + " 2 2 6 6 --upstream 1,1,1,1 ", "why is d x 0 now?"}};
  } else {
    page.next = {{command + " --blank", "a work sheet, to fill in"},
                 {command + " --python", "the same in PyTorch"}};
  }
  return {std::move(page), json_text(to_json(q, a)), python(q, a)};
}

// ---- JSON

namespace {

/// One member of each row's pass, as a list of rows.
Json rows_json(const std::vector<LayerNormPass>& passes, Row LayerNormPass::*member, DType dtype) {
  Json list = Json::array();
  for (const LayerNormPass& pass : passes) list.push_back(json_row(pass.*member, dtype));
  return list;
}

Json backward_json(const std::vector<LayerNormPass>& passes, const Row& d_scale, const Row& d_shift,
                   DType dtype) {
  using P = LayerNormPass;
  Json scalars = Json::object(), terms = Json::array();
  for (const auto& [key, member] :
       {std::pair{"d_deviation", &P::d_deviation}, std::pair{"d_variance", &P::d_variance},
        std::pair{"d_mean", &P::d_mean}}) {
    scalars[key] = Json::array();
    for (const P& pass : passes) scalars[key].push_back(json_number(pass.*member, dtype));
  }
  for (const P& pass : passes)
    terms.push_back({json_row(pass.g, dtype), json_row(pass.minus_mean_g, dtype),
                     json_row(pass.minus_projection, dtype)});
  return {{"upstream", rows_json(passes, &P::d_output, dtype)},
          {"dscale", json_row(d_scale, dtype)},
          {"dshift", json_row(d_shift, dtype)},
          {"d_normalized", rows_json(passes, &P::d_normalized, dtype)},
          {"d_centered_by_division", rows_json(passes, &P::d_centered_direct, dtype)},
          {"d_deviation", scalars["d_deviation"]},
          {"d_variance", scalars["d_variance"]},
          {"d_squared", rows_json(passes, &P::d_squared, dtype)},
          {"d_centered_by_squared", rows_json(passes, &P::d_centered_by_squared, dtype)},
          {"d_centered", rows_json(passes, &P::d_centered, dtype)},
          {"d_mean", scalars["d_mean"]},
          {"dx_by_centered", rows_json(passes, &P::d_x_direct, dtype)},
          {"dx_by_mean", rows_json(passes, &P::d_x_by_mean, dtype)},
          {"dx", rows_json(passes, &P::d_x, dtype)},
          {"dx_terms", terms},
          {"dx_by_formula", rows_json(passes, &P::d_x_by_formula, dtype)}};
}

}  // namespace

Json to_json(const LayerNormQuestion& q, const LayerNormAnswer& a) {
  const DType t = q.dtype;
  Json rows = Json::array(), new_output = Json::array();
  for (std::size_t i = 0; i < q.rows.size(); ++i) {
    const LayerNormPass &with = a.with_eps[i], &without = a.without_eps[i];
    rows.push_back({{"x", json_row(q.rows[i], t)},
                    {"mean", json_number(with.mean, t)},
                    {"centered", json_row(with.centered, t)},
                    {"squared", json_row(with.squared, t)},
                    {"variance", json_number(with.variance, t)},
                    {"deviation_without_eps", json_number(without.deviation, t)},
                    {"normalized_without_eps", json_row(without.normalized, t)},
                    {"deviation", json_number(with.deviation, t)},
                    {"normalized", json_row(with.normalized, t)},
                    {"output", json_row(with.output, t)}});
    new_output.push_back(json_row(a.new_output[i], t));
  }
  return {
      {"operation", "layer_norm"},
      {"dtype", name_of(t)},
      {"eps", q.eps},
      {"scale", json_row(q.scale, t)},
      {"shift", json_row(q.shift, t)},
      {"rows", rows},
      {"backward", backward_json(a.with_eps, a.d_scale, a.d_shift, t)},
      {"backward_without_eps", backward_json(a.without_eps, a.d_scale_without_eps, a.d_shift_without_eps, t)},
      {"sgd",
       {{"lr", q.lr},
        {"scale", json_row(a.new_scale, t)},
        {"shift", json_row(a.new_shift, t)},
        {"output", new_output},
        {"loss_before", json_number(a.loss, t)},
        {"loss_after", json_number(a.new_loss, t)}}}};
}

}  // namespace handgrad::train::explain
