// The page of rms_norm: layer_norm without the mean and without the shift.
#include <fmt/format.h>

#include <algorithm>

#include "handgrad/core/ops.h"
#include "handgrad/core/parameter.h"
#include "handgrad/optim/sgd.h"
#include "handgrad/view/explain/page.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
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

void write_forward(Page& page, const Graph& g, const Numbers& x, const Numbers& scale, double eps) {
  const auto count = static_cast<double>(x.size());
  const double sum_of_squared = sum(Tensor::constant(g.squared.y)).item();
  page.row("1", "x", {}, "x", x, Origin::given);
  page.row("2", "squared", "x * x", "squared", g.squared.y);
  page.scalar(
      "3", "mean square",
      Sentence(Sum{g.squared.y.values(), sum_of_squared}, " / ", given(count), "  =  ", g.mean.y.item()),
      "mean_square", g.mean.y.item());
  Sentence root("sqrt(");
  root.add(g.mean.y.item());
  if (eps > 0) root.add(" + " + constant_text(eps));
  page.scalar("4", "root", root.add(")  =  ", g.root.y.item()), "root", g.root.y.item());
  page.row("5", "normalized", "x / root", "normalized", g.normalized.y);
  const bool ones = std::all_of(scale.begin(), scale.end(), [](double v) { return v == 1; });
  page.row("6", "scale", ones ? "starts as ones" : "", "scale", scale, Origin::given);
  page.row("7", "output", "scale * normalized", "output", g.output.y);
}

void write_backward(Page& page, const Graph& g, const Tensor& x) {
  const Numbers d_normalized = g.output.d_input[1].values();
  const double sum_dx = sum(Tensor::constant(g.output.d_input[1]) * x.detach()).item();
  const double root = g.root.y.item(), d_root = g.root.dy.item(), d_mean = g.mean.dy.item();
  page.row("7", "d output", "upstream", "upstream", g.output.dy, Origin::given);
  page.row("", "d scale", "d output * normalized", "dscale", g.output.d_input[0]);
  page.row("", "d normalized", "d output * scale", "d_normalized", d_normalized);
  page.row("5", "d x", "d normalized / root", "dx_by_division", g.normalized.d_input[0]);
  page.scalar("", "d root",
              Sentence("-sum(d normalized * x) / root^2  =  -", Products{d_normalized, x.values(), sum_dx},
                       " / ", g.under_root.y.item(), "  =  ", d_root),
              "d_root", d_root);
  page.scalar("4", "d mean square",
              Sentence("d root / (2 * root)  =  ", d_root, " / ", 2 * root, "  =  ", d_mean), "d_mean_square",
              d_mean);
  page.row("3", "d squared", fmt::format("d mean square / {}", x.numel()), "d_squared", g.mean.d_input[0]);
  page.row("2", "d x", "+ d squared * 2 * x", "dx_by_squared", g.squared.d_input[0]);
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

std::string python(const Request& request, const Numbers& scale, const std::vector<Numbers>& upstream,
                   double eps, const Tensor& x, const Tensor& scale_leaf, const Tensor& y) {
  return python_head() + python_leaf("x", python_rows(request.rows), request.dtype) +
         python_leaf("scale", python_list(scale), request.dtype) +
         fmt::format("root = torch.sqrt((x * x).mean(dim=-1, keepdim=True) + {})\n", eps) +
         python_line("y = scale * (x / root)", python_expected(y.array())) +
         python_backward("y", upstream, request.dtype) +
         python_line("print(scale.grad)", signed_row(scale_leaf.grad().values())) +
         python_line("print(x.grad)", python_expected(x.grad()));
}

void write_step(Page& page, const Request& request, Parameter& scale, double eps, double lr) {
  const std::size_t width = request.rows.front().size();
  const bool frozen = scale.frozen();
  optim::Sgd sgd({{"scale", &scale, nullptr}}, {.lr = lr});
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

Page rms_norm_page(const Request& request, const ModelNorm* model) {
  const std::size_t width = request.rows.front().size(), rows = request.rows.size();
  const Numbers scale = row_option(request, "scale", width, 1, "feature of x");
  const std::vector<Numbers> upstream = upstream_option(request, rows, width);
  const double eps = number_option(request, "eps", 1e-5, 0), lr = number_option(request, "lr", 0.1, 0);
  Page page(request,
            fmt::format("rms_norm of {} of {}", number_of_rows(rows), plural(width, "feature", "features")));
  page.given("eps", eps);
  page.given("lr", lr);
  for (std::size_t i = 0; i < rows; ++i) {
    const Tensor x = leaf(request.rows[i], request.dtype), s = leaf(scale, request.dtype);
    const RecordedGraph recorded = record_graph(
        [&] { rms_norm_composed(x, s, eps).backward(leaf(upstream[i], request.dtype).array()); });
    const Graph graph(recorded);
    page.in_row(i);
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
  page.python() = python(request, scale, upstream, eps, x, trained, y);
  page.in_row(-1);
  if (rows > 1) {
    page.section(Part::backward, "ALL ROWS share scale: its gradients add up", width);
    page.row("", "d scale", {}, "dscale", trained.grad());
  }
  if (model != nullptr && model->scale_frozen) trained.freeze();
  write_step(page, request, trained, eps, lr);
  if (model != nullptr) {
    page.sheet().title = model->title;
    for (const std::string& line : model->loss) page.sheet().title += "\n" + line;
  }
  return page;
}

Explanation explain_rms_norm(const Request& request) {
  return rms_norm_page(request, nullptr).finish(operation_next(request));
}

}  // namespace handgrad::view::explain
