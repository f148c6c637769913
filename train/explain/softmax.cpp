// The page of softmax: numbers become probabilities. Written from primitive operations; what trains does the same in one.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "handgrad/core/ops.h"
#include "handgrad/train/explain/page.h"
#include "handgrad/train/explain/sheets.h"
#include "handgrad/train/explain/words.h"
#include "handgrad/train/text.h"

namespace handgrad::train::explain {
namespace {

/// The largest number takes no part in the derivative: it falls out of the quotient.
Tensor softmax_composed(const Tensor& x) {
  const Tensor powers = exp(x - max(x.detach(), kLast, KeepDim::yes));
  return powers / sum(powers, kLast, KeepDim::yes);
}

void write_row(Page& page, const RecordedGraph& graph, const Tensor& x, const std::string& of) {
  const RecordedOperation &shifted = graph.at(0, "sub"), &powers = graph.at(1, "exp"),
                          &total = graph.at(2, "sum"), &output = graph.at(3, "div");
  const std::size_t width = static_cast<std::size_t>(x.numel());
  const double largest = max(x.detach()).item(), sum_powers = total.y.item();
  page.section(Part::forward, "FORWARD" + of, width);
  page.row("1", "x", {}, "x", x.array(), Source::given);
  page.scalar("2", "largest", Sentence("of x  =  ").add(largest), "largest", largest);
  page.row("3", "shifted", "x - largest", "shifted", shifted.y);
  page.row("4", "powers", "exp(shifted)", "powers", powers.y);
  page.scalar("5", "sum", Sentence().add_sum(powers.y.values(), sum_powers).add("  =  ").add(sum_powers),
              "sum", sum_powers);
  page.row("6", "output", "powers / sum", "output", output.y);
  if (largest == -std::numeric_limits<double>::infinity())
    page.say("0 / 0: of a row that is masked altogether, handgrad's softmax makes zeros", "note");
  page.scalar("", "check", Sentence("the output adds up to ").add(sum(Tensor::constant(output.y)).item()), "",
              0);

  const NoGrad no_grad;
  const Row dy = output.dy.values();
  const double weighted = sum(Tensor::constant(output.dy) * Tensor::constant(powers.y)).item();
  page.section(Part::backward, "BACKWARD" + of, width);
  page.row("6", "d output", "upstream", "upstream", dy, Source::given);
  page.row("", "d powers", "d output / sum", "d_powers_by_division", output.given[0]);
  page.scalar("5", "d sum",
              Sentence("-sum(d output * powers) / sum^2  =  -")
                  .add_products(dy, powers.y.values(), weighted)
                  .add(" / ")
                  .add(sum_powers * sum_powers)
                  .add("  =  ")
                  .add(total.dy.item()),
              "d_sum", total.dy.item());
  page.row("", "d powers", "+ d sum", "d_powers_by_sum", total.given[0]);
  page.row("", " ", "  both together", "d_powers", powers.dy);
  page.row("4", "d shifted", "d powers * powers", "d_shifted", powers.given[0]);
  page.row("3", "d x", "d shifted", "dx", x.grad());

  const Tensor y = Tensor::constant(output.y), up = Tensor::constant(output.dy);
  page.section(Part::backward, "THE SAME IN ONE FORMULA" + of, width);
  page.say("d x = output * (d output - sum(d output * output))");
  const double inner = sum(up * y).item();
  page.scalar("", "sum", Sentence("d output * output, added up  =  ").add(inner), "sum", inner);
  page.row("", "d x", {}, "dx_by_formula", (y * (up - inner)).array());
}

}  // namespace

Explanation explain_softmax(const Request& request) {
  const std::size_t width = request.rows.front().size(), rows = request.rows.size();
  const std::vector<Row> upstream = upstream_option(request, rows, width);
  Page page(request, fmt::format("softmax of {} of {}", number_of_rows(rows),
                                 plural(static_cast<std::int64_t>(width), "number", "numbers")));
  std::string outputs, gradients;
  for (std::size_t i = 0; i < rows; ++i) {
    const Tensor x = leaf(request.rows[i], request.dtype);
    RecordedGraph graph;
    Tensor y;
    {
      const GraphObserverGuard guard(graph);
      y = softmax_composed(x);
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
          python_line("y = torch.softmax(x, dim=-1)", outputs) +
          fmt::format("y.backward(torch.tensor({}, {}))\n", python_rows(upstream), type) +
          python_line("print(x.grad)", gradients));
}

}  // namespace handgrad::train::explain
