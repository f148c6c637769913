// The page of rms_norm: layer_norm without the mean and without the shift.
#include <fmt/format.h>

#include <algorithm>

#include "handgrad/core/ops.h"
#include "handgrad/core/parameter.h"
#include "handgrad/train/explain/page.h"
#include "handgrad/train/explain/sheets.h"
#include "handgrad/train/explain/words.h"
#include "handgrad/train/sgd.h"
#include "handgrad/train/text.h"

namespace handgrad::train::explain {
namespace {

/// The graph of rms_norm_composed of one row, in the order in which it records.
struct Graph {
  explicit Graph(const RecordedGraph& graph)
      : squared(graph.at(0, "square")),
        mean(graph.at(1, "mean")),
        under_root(graph.at(2, "add")),
        root(graph.at(3, "sqrt")),
        normalized(graph.at(4, "div")),
        output(graph.at(5, "mul")) {}

  const RecordedOperation &squared, &mean, &under_root, &root, &normalized, &output;
};

void write_forward(Page& page, const Graph& g, const Row& x, const Row& scale, double eps) {
  const auto count = static_cast<double>(x.size());
  const double sum_of_squared = sum(Tensor::constant(g.squared.y)).item();
  page.row("1", "x", {}, "x", x, Source::given);
  page.row("2", "squared", "x * x", "squared", g.squared.y);
  page.scalar("3", "mean square",
              Sentence()
                  .add_sum(g.squared.y.values(), sum_of_squared)
                  .add(" / ")
                  .add(count, Source::given)
                  .add("  =  ")
                  .add(g.mean.y.item()),
              "mean_square", g.mean.y.item());
  Sentence root("sqrt(");
  root.add(g.mean.y.item());
  if (eps > 0) root.add(" + " + constant_text(eps));
  page.scalar("4", "root", root.add(")  =  ").add(g.root.y.item()), "root", g.root.y.item());
  page.row("5", "normalized", "x / root", "normalized", g.normalized.y);
  const bool ones = std::all_of(scale.begin(), scale.end(), [](double v) { return v == 1; });
  page.row("6", "scale", ones ? "starts as ones" : "", "scale", scale, Source::given);
  page.row("7", "output", "scale * normalized", "output", g.output.y);
}

void write_backward(Page& page, const Graph& g, const Tensor& x) {
  const Row d_normalized = g.output.given[1].values();
  const double sum_dx = sum(Tensor::constant(g.output.given[1]) * x.detach()).item();
  const double root = g.root.y.item(), d_root = g.root.dy.item(), d_mean = g.mean.dy.item();
  page.row("7", "d output", "upstream", "upstream", g.output.dy, Source::given);
  page.row("", "d scale", "d output * normalized", "dscale", g.output.given[0]);
  page.row("", "d normalized", "d output * scale", "d_normalized", d_normalized);
  page.row("5", "d x", "d normalized / root", "dx_by_division", g.normalized.given[0]);
  page.scalar("", "d root",
              Sentence("-sum(d normalized * x) / root^2  =  -")
                  .add_products(d_normalized, x.values(), sum_dx)
                  .add(" / ")
                  .add(g.under_root.y.item())
                  .add("  =  ")
                  .add(d_root),
              "d_root", d_root);
  page.scalar(
      "4", "d mean square",
      Sentence("d root / (2 * root)  =  ").add(d_root).add(" / ").add(2 * root).add("  =  ").add(d_mean),
      "d_mean_square", d_mean);
  page.row("3", "d squared", fmt::format("d mean square / {}", x.numel()), "d_squared", g.mean.given[0]);
  page.row("2", "d x", "+ d squared * 2 * x", "dx_by_squared", g.squared.given[0]);
  page.row("", " ", "  both together", "dx", x.grad());
}

void write_formula(Page& page, const Graph& g, const Tensor& scale) {
  const NoGrad no_grad;
  const Tensor upstream = Tensor::constant(g.output.dy) * scale, n = Tensor::constant(g.normalized.y);
  const Tensor term = -(n * mean(upstream * n, kLast, KeepDim::yes));
  page.say("d x = (g - normalized * mean(g * normalized)) / root,   g = scale * d output");
  page.row("", "g", {}, "g", upstream.array());
  page.row("", "- normalized * mean(g * normalized)", {}, "minus_projection", term.array());
  page.row("", "d x", "sum / root", "dx_by_formula", ((upstream + term) / g.root.y.item()).array());
}

std::string python(const Request& request, const Row& scale, const std::vector<Row>& upstream, double eps,
                   const Tensor& x, const Tensor& scale_leaf, const Tensor& y) {
  const std::string type = fmt::format("dtype=torch.{}", name_of(request.dtype));
  std::string outputs, gradients;
  for (std::size_t i = 0; i < request.rows.size(); ++i) {
    const char* between = i == 0 ? "" : " / ";
    outputs += between + signed_row(row_of(y.array(), static_cast<std::int64_t>(i)));
    gradients += between + signed_row(row_of(x.grad(), static_cast<std::int64_t>(i)));
  }
  return "import torch\ntorch.set_printoptions(precision=8)\n" +
         fmt::format("x = torch.tensor({}, {}, requires_grad=True)\n", python_rows(request.rows), type) +
         fmt::format("scale = torch.tensor({}, {}, requires_grad=True)\n", python_list(scale), type) +
         fmt::format("root = torch.sqrt((x * x).mean(dim=-1, keepdim=True) + {})\n", eps) +
         python_line("y = scale * (x / root)", outputs) +
         fmt::format("y.backward(torch.tensor({}, {}))\n", python_rows(upstream), type) +
         python_line("print(scale.grad)", signed_row(scale_leaf.grad().values())) +
         python_line("print(x.grad)", gradients);
}

void write_step(Page& page, const Request& request, Parameter& scale, double eps, double lr) {
  const std::size_t width = request.rows.front().size();
  const bool frozen = scale.frozen();
  Sgd sgd({{"scale", &scale, nullptr}}, {.lr = lr});
  sgd.step(lr);
  page.in_row(-1);
  page.section(Part::step, "ONE SGD STEP, lr = " + constant_text(lr), width);
  page.row("", "scale",
           frozen ? "frozen: no step moves it" : fmt::format("scale - {} * d scale", constant_text(lr)),
           "scale", scale.array());
  for (std::size_t i = 0; i < request.rows.size(); ++i)
    page.row("", "output", fmt::format("same x, new scale{}", of_rows(i, request.rows.size())),
             fmt::format("output_{}", i),
             rms_norm_composed(leaf(request.rows[i], request.dtype), scale, eps).array());
}

}  // namespace

Explanation explain_rms_norm(const Request& request) { return explain_rms_norm(request, false); }

Explanation explain_rms_norm(const Request& request, bool scale_frozen) {
  const std::size_t width = request.rows.front().size(), rows = request.rows.size();
  const Row scale = row_option(request, "scale", width, 1, "feature of x");
  const std::vector<Row> upstream = upstream_option(request, rows, width);
  const double eps = number_option(request, "eps", 1e-5, 0), lr = number_option(request, "lr", 0.1, 0);
  Page page(request, fmt::format("rms_norm of {} of {}", number_of_rows(rows),
                                 plural(static_cast<std::int64_t>(width), "feature", "features")));
  page.given("eps", eps);
  page.given("lr", lr);
  for (std::size_t i = 0; i < rows; ++i) {
    const Tensor x = leaf(request.rows[i], request.dtype), s = leaf(scale, request.dtype);
    RecordedGraph recorded;
    {
      const GraphObserverGuard guard(recorded);
      rms_norm_composed(x, s, eps).backward(leaf(upstream[i], request.dtype).array());
    }
    const Graph graph(recorded);
    page.in_row(static_cast<std::int64_t>(i));
    page.section(Part::forward, "FORWARD" + of_rows(i, rows), width);
    write_forward(page, graph, request.rows[i], scale, eps);
    page.section(Part::backward, "BACKWARD" + of_rows(i, rows), width);
    write_backward(page, graph, x);
    page.section(Part::backward, "THE SAME IN ONE FORMULA" + of_rows(i, rows), width);
    write_formula(page, graph, s);
  }
  const Tensor x = leaf(request.rows, request.dtype);
  Parameter trained("scale", leaf(scale, request.dtype));
  const Tensor y = rms_norm_composed(x, trained, eps);
  y.backward(leaf(upstream, request.dtype).array());
  const std::string code = python(request, scale, upstream, eps, x, trained, y);
  page.in_row(-1);
  if (rows > 1) {
    page.section(Part::backward, "ALL ROWS share scale: its gradients add up", width);
    page.row("", "d scale", {}, "dscale", trained.grad());
  }
  if (scale_frozen) trained.freeze();
  write_step(page, request, trained, eps, lr);
  return page.finish(usual_next(request), code);
}

}  // namespace handgrad::train::explain
