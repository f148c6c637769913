// The page of gelu, in the book's form: x times P, the probability that a normal number is below it.
//
//   u = sqrt(2 / pi) * (x + 0.044715 * x^3)    P = (1 + tanh(u)) / 2    output = x * P
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "handgrad/core/ops.h"
#include "handgrad/train/explain/page.h"
#include "handgrad/train/explain/sheets.h"
#include "handgrad/train/explain/words.h"
#include "handgrad/train/text.h"

namespace handgrad::train::explain {
namespace {

const double kFactor = std::sqrt(2 / std::numbers::pi);
constexpr double kCube = 0.044715;

Tensor gelu_composed(const Tensor& x) {
  const Tensor u = kFactor * (x + kCube * pow(x, 3));
  return x * (0.5 * (1 + tanh(u)));
}

void write_row(Page& page, const RecordedGraph& graph, const Tensor& x, const std::string& of) {
  const RecordedOperation &cube = graph.at(0, "pow"), &part = graph.at(1, "mul"), &inner = graph.at(2, "add"),
                          &u = graph.at(3, "mul"), &bent = graph.at(4, "tanh"), &plus = graph.at(5, "add"),
                          &p = graph.at(6, "mul"), &output = graph.at(7, "mul");
  const std::size_t width = static_cast<std::size_t>(x.numel());
  page.section(Part::forward, "FORWARD" + of, width);
  page.row("1", "x", {}, "x", x.array(), Source::given);
  page.row("2", "cube", "x * x * x", "cube", cube.y);
  page.row("3", "inner", "x + 0.044715 * cube", "inner", inner.y);
  page.row("4", "u", "sqrt(2 / pi) * inner", "u", u.y);
  page.row("5", "tanh", "tanh(u)", "tanh", bent.y);
  page.row("6", "P", "(1 + tanh) / 2", "p", p.y);
  page.row("7", "output", "x * P", "output", output.y);
  page.say("far above 0 the output is x itself, far below it is 0", "check");

  page.section(Part::backward, "BACKWARD" + of, width);
  page.row("7", "d output", "upstream", "upstream", output.dy, Source::given);
  page.row("", "d x", "d output * P", "dx_by_product", output.given[0]);
  page.row("6", "d P", "d output * x", "d_p", output.given[1]);
  page.row("5", "d tanh", "d P / 2", "d_tanh", plus.given[0]);
  page.row("4", "d u", "d tanh * (1 - tanh * tanh)", "d_u", bent.given[0]);
  page.row("3", "d inner", "d u * sqrt(2 / pi)", "d_inner", u.given[0]);
  page.row("", "d x", "+ d inner", "dx_by_inner", inner.given[0]);
  page.row("2", "d cube", "d inner * 0.044715", "d_cube", part.given[0]);
  page.row("1", "d x", "+ d cube * 3 * x * x", "dx_by_cube", cube.given[0]);
  page.row("", " ", "  all three together", "dx", x.grad());
}

}  // namespace

Explanation explain_gelu(const Request& request) {
  const std::size_t width = request.rows.front().size(), rows = request.rows.size();
  Request ones = request;  // each number by itself: the derivative of every one is what a reader wants
  if (!request.lists.contains("upstream")) ones.lists["upstream"] = {Row(width, 1.0)};
  const std::vector<Row> upstream = upstream_option(ones, rows, width);
  Page page(request, fmt::format("gelu of {}, each by itself",
                                 plural(static_cast<std::int64_t>(rows * width), "number", "numbers")));
  std::string outputs, gradients;
  for (std::size_t i = 0; i < rows; ++i) {
    const Tensor x = leaf(request.rows[i], request.dtype);
    RecordedGraph graph;
    Tensor y;
    {
      const GraphObserverGuard guard(graph);
      y = gelu_composed(x);
      y.backward(leaf(upstream[i], request.dtype).array());
    }
    page.in_row(static_cast<std::int64_t>(i));
    write_row(page, graph, x, of_rows(i, rows));
    outputs += (i == 0 ? "" : " / ") + signed_row(y.values());
    gradients += (i == 0 ? "" : " / ") + signed_row(x.grad().values());
  }
  const std::string type = fmt::format("dtype=torch.{}", name_of(request.dtype));
  return page.finish(
      usual_next(request),
      "import torch\ntorch.set_printoptions(precision=8)\n" +
          fmt::format("x = torch.tensor({}, {}, requires_grad=True)\n", python_rows(request.rows), type) +
          python_line("y = torch.nn.functional.gelu(x, approximate='tanh')", outputs) +
          fmt::format("y.backward(torch.tensor({}, {}))\n", python_rows(upstream), type) +
          python_line("print(x.grad)", gradients));
}

}  // namespace handgrad::train::explain
