// The page of softmax: numbers become probabilities. Written from primitive operations; training uses one fused
// operation.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "handgrad/core/ops.h"
#include "handgrad/view/explain/page.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

void write_row(Page& page, const RecordedGraph& graph, const Tensor& x, const std::string& of) {
  const RecordedOperation &shifted = graph.at(0, "sub"), &powers = graph.at(1, "exp"),
                          &total = graph.at(2, "sum"), &output = graph.at(3, "div");
  const std::size_t width = static_cast<std::size_t>(x.numel());
  const double largest = max(x.detach()).item(), sum_powers = total.y.item();
  page.section(Part::forward, "FORWARD" + of, width);
  page.row("1", "x", {}, "x", x.array(), Origin::given);
  page.scalar("2", "largest", Sentence("of x  =  ", largest), "largest", largest);
  page.row("3", "shifted", "x - largest", "shifted", shifted.y);
  page.row("4", "powers", "exp(shifted)", "powers", powers.y);
  page.scalar("5", "sum", Sentence(Sum{powers.y.values(), sum_powers}, "  =  ", sum_powers), "sum",
              sum_powers);
  page.row("6", "output", "powers / sum", "output", output.y);
  if (largest == -std::numeric_limits<double>::infinity())
    page.say("0 / 0: for a fully masked row handgrad's softmax returns zeros", "note");
  page.say("", "check", Sentence("the output adds up to ", sum(Tensor::constant(output.y)).item()));

  const NoGrad no_grad;
  const Numbers dy = output.dy.values();
  const double weighted = sum(Tensor::constant(output.dy) * Tensor::constant(powers.y)).item();
  page.section(Part::backward, "BACKWARD" + of, width);
  page.row("6", "d output", "upstream", "upstream", dy, Origin::given);
  page.row("", "d powers", "d output / sum", "d_powers_by_division", output.d_input[0]);
  page.scalar("5", "d sum",
              Sentence("-sum(d output * powers) / sum^2  =  -", Products{dy, powers.y.values(), weighted},
                       " / ", sum_powers * sum_powers, "  =  ", total.dy.item()),
              "d_sum", total.dy.item());
  page.row("", "d powers", "+ d sum", "d_powers_by_sum", total.d_input[0]);
  page.row("", " ", "  both together", "d_powers", powers.dy);
  page.row("4", "d shifted", "d powers * powers", "d_shifted", powers.d_input[0]);
  page.row("3", "d x", "d shifted", "dx", x.grad());

  const Tensor y = Tensor::constant(output.y), up = Tensor::constant(output.dy);
  page.section(Part::backward, "THE SAME IN ONE FORMULA" + of, width);
  page.say("d x = output * (d output - sum(d output * output))");
  const double inner = sum(up * y).item();
  page.scalar("", "sum", Sentence("d output * output, added up  =  ", inner), "sum", inner);
  page.row("", "d x", {}, "dx_by_formula", (y * (up - inner)).array());
}

}  // namespace

Explanation explain_softmax(const Request& request) {
  const std::size_t width = request.rows.front().size(), rows = request.rows.size();
  return explain_rows(
      request, {fmt::format("softmax of {} of {}", number_of_rows(rows), plural(width, "number", "numbers")),
                upstream_option(request, rows, width), [](const Tensor& x) { return softmax_composed(x); },
                write_row, "y = torch.softmax(x, dim=-1)"});
}

}  // namespace handgrad::view::explain
