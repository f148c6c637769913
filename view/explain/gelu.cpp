// The page of gelu, in the book's form: x times P, the probability that a normal number is below it.
//
//   u = sqrt(2 / pi) * (x + 0.044715 * x^3)    P = (1 + tanh(u)) / 2    output = x * P
#include <fmt/format.h>

#include "handgrad/core/ops.h"
#include "handgrad/view/explain/page.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

void write_row(Page& page, const RecordedGraph& graph, const Tensor& x, const std::string& of) {
  const RecordedOperation &cube = graph.at(0, "pow"), &part = graph.at(1, "mul"), &inner = graph.at(2, "add"),
                          &u = graph.at(3, "mul"), &bent = graph.at(4, "tanh"), &plus = graph.at(5, "add"),
                          &p = graph.at(6, "mul"), &output = graph.at(7, "mul");
  const std::size_t width = static_cast<std::size_t>(x.numel());
  page.section(Part::forward, "FORWARD" + of, width);
  page.row("1", "x", {}, "x", x.array(), Origin::given);
  page.row("2", "cube", "x * x * x", "cube", cube.y);
  page.row("3", "inner", "x + 0.044715 * cube", "inner", inner.y);
  page.row("4", "u", "sqrt(2 / pi) * inner", "u", u.y);
  page.row("5", "tanh", "tanh(u)", "tanh", bent.y);
  page.row("6", "P", "(1 + tanh) / 2", "p", p.y);
  page.row("7", "output", "x * P", "output", output.y);
  page.say("far above 0 the output is x itself, far below it is 0", "check");

  page.section(Part::backward, "BACKWARD" + of, width);
  page.row("7", "d output", "upstream", "upstream", output.dy, Origin::given);
  page.row("", "d x", "d output * P", "dx_by_product", output.d_input[0]);
  page.row("6", "d P", "d output * x", "d_p", output.d_input[1]);
  page.row("5", "d tanh", "d P / 2", "d_tanh", plus.d_input[0]);
  page.row("4", "d u", "d tanh * (1 - tanh * tanh)", "d_u", bent.d_input[0]);
  page.row("3", "d inner", "d u * sqrt(2 / pi)", "d_inner", u.d_input[0]);
  page.row("", "d x", "+ d inner", "dx_by_inner", inner.d_input[0]);
  page.row("2", "d cube", "d inner * 0.044715", "d_cube", part.d_input[0]);
  page.row("1", "d x", "+ d cube * 3 * x * x", "dx_by_cube", cube.d_input[0]);
  page.row("", " ", "  all three together", "dx", x.grad());
}

}  // namespace

Explanation explain_gelu(const Request& request) {
  const std::size_t width = request.rows.front().size(), rows = request.rows.size();
  Request ones = request;  // so that the page shows the derivative of every number
  if (!request.options.contains("upstream")) ones.options["upstream"] = {Numbers(width, 1.0)};
  return explain_rows(request,
                      {fmt::format("gelu of {}, each by itself", plural(rows * width, "number", "numbers")),
                       upstream_option(ones, rows, width), [](const Tensor& x) { return gelu_composed(x); },
                       write_row, "y = torch.nn.functional.gelu(x, approximate='tanh')"});
}

}  // namespace handgrad::view::explain
