// The page of cross_entropy: how improbable the target was. Written from primitive operations; training uses one fused
// operation.
#include <fmt/format.h>

#include "handgrad/core/ops.h"
#include "handgrad/view/explain/page.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

/// -log softmax(logits)[target] of one row.
Tensor row_loss(const Tensor& logits, std::int64_t target) {
  const Tensor shifted = logits - max(logits.detach(), kLast, KeepDim::yes);
  const Tensor log_p = shifted - log(sum(exp(shifted), kLast, KeepDim::yes));
  return -slice(log_p, kLast, target, target + 1);
}

void write_row(Page& page, const RecordedGraph& graph, const Tensor& x, std::int64_t target, std::size_t rows,
               const std::string& of) {
  const RecordedOperation &shifted = graph.at(0, "sub"), &powers = graph.at(1, "exp"),
                          &total = graph.at(2, "sum"), &log_sum = graph.at(3, "log"),
                          &log_p = graph.at(4, "sub"), &loss = graph.at(6, "neg");
  const std::size_t width = static_cast<std::size_t>(x.numel());
  const double largest = max(x.detach()).item();
  page.section(Part::forward, "FORWARD" + of + fmt::format(", target [{}]", target), width);
  page.row("1", "logits", {}, "logits", x.array(), Origin::given);
  page.scalar("2", "largest", Sentence("of the logits  =  ", largest), "largest", largest);
  page.row("3", "shifted", "logits - largest", "shifted", shifted.y);
  page.row("4", "powers", "exp(shifted)", "powers", powers.y);
  page.scalar("5", "sum", Sentence(Sum{powers.y.values(), total.y.item()}, "  =  ", total.y.item()), "sum",
              total.y.item());
  page.scalar("6", "log sum", Sentence("log(", total.y.item(), ")  =  ", log_sum.y.item()), "log_sum",
              log_sum.y.item());
  page.row("7", "log p", "shifted - log sum", "log_p", log_p.y);
  page.scalar("8", "loss", Sentence(fmt::format("-log p[{}]  =  ", target), loss.y.item()), "loss",
              loss.y.item());

  const NoGrad no_grad;
  page.section(Part::backward, "BACKWARD" + of, width);
  page.scalar("8", "d loss",
              Sentence("upstream  =  ", given(loss.dy.item()),
                       rows > 1 ? fmt::format(": the loss is the mean of {} rows", rows) : ""),
              "upstream", loss.dy.item());
  page.row("7", "d log p", fmt::format("-d loss at the target [{}]", target), "d_log_p", log_p.dy);
  page.row("", "d shifted", "d log p", "d_shifted_directly", log_p.d_input[0]);
  page.scalar("6", "d log sum", Sentence("-sum(d log p)  =  ", log_sum.dy.item()), "d_log_sum",
              log_sum.dy.item());
  page.scalar(
      "5", "d sum",
      Sentence("d log sum / sum  =  ", log_sum.dy.item(), " / ", total.y.item(), "  =  ", total.dy.item()),
      "d_sum", total.dy.item());
  page.row("4", "d powers", "d sum for each", "d_powers", total.d_input[0]);
  page.row("3", "d shifted", "+ d powers * powers", "d_shifted_by_powers", powers.d_input[0]);
  page.row("", "d logits", "both together", "dlogits", x.grad());

  const Tensor p = Tensor::constant(powers.y) / Tensor::constant(total.y);
  page.section(Part::backward, "THE SAME IN ONE FORMULA" + of, width);
  page.say("d logits = d loss * (p - 1 at the target),   p = softmax(logits) = powers / sum");
  page.row("", "p", {}, "p", p.array());
  Numbers one(width, 0.0);
  one[static_cast<std::size_t>(target)] = 1;
  page.row("", "d logits", {}, "dlogits_by_formula",
           ((p - leaf(one, x.dtype())) * -loss.d_input[0].value(0)).array());
}

std::vector<std::int64_t> targets_of(const Request& request, std::size_t width) {
  std::vector<std::int64_t> targets(request.rows.size(), 0);
  const auto found = request.options.find("target");
  if (found == request.options.end()) return targets;
  const Numbers& given = found->second.front();
  if (found->second.size() != 1 || given.size() != targets.size())
    throw_error(request,
                fmt::format("`target` needs {}, one for each row of logits, got {}",
                            plural(targets.size(), "number", "numbers"), given.size()),
                {{"x", typed(request.rows)}, {"target", typed(found->second)}});
  for (std::size_t i = 0; i < given.size(); ++i) {
    targets[i] = static_cast<std::int64_t>(given[i]);
    if (!(given[i] >= 0 && given[i] < static_cast<double>(width)) ||
        static_cast<double>(targets[i]) != given[i])
      throw_error(request,
                  fmt::format("`target` must lie in 0..{}, got {}", width - 1, constant_text(given[i])),
                  {{"x", typed(request.rows)}, {"target", typed(found->second)}}, "`target` 0");
  }
  return targets;
}

}  // namespace

Explanation explain_cross_entropy(const Request& request) {
  const std::size_t width = request.rows.front().size(), rows = request.rows.size();
  const std::vector<std::int64_t> targets = targets_of(request, width);
  Page page(request,
            fmt::format("cross_entropy of {} of {}", number_of_rows(rows), plural(width, "logit", "logits")));
  page.given("target", Numbers(targets.begin(), targets.end()));
  std::string gradients;
  Numbers losses, ids;
  for (std::size_t i = 0; i < rows; ++i) {
    const Tensor x = leaf(request.rows[i], request.dtype);
    const RecordedGraph graph = record_graph([&] {
      const Tensor loss = row_loss(x, targets[i]);
      loss.backward(Array::full({1}, 1 / static_cast<double>(rows), request.dtype));
      losses.push_back(loss.item());
    });
    page.in_row(i);
    write_row(page, graph, x, targets[i], rows, of_rows(i, rows));
    gradients += (i == 0 ? "" : " / ") + signed_row(x.grad().values());
    ids.push_back(static_cast<double>(targets[i]));
  }
  const Tensor all = leaf(losses, request.dtype).detach();
  const double loss = mean(all).item();
  if (rows > 1) {
    page.in_row(-1);
    page.section(Part::forward, "LOSS, the mean over rows", 0);
    page.scalar(
        "", "loss",
        Sentence(Sum{losses, sum(all).item()}, " / ", given(static_cast<double>(rows)), "  =  ", loss),
        "loss", loss);
  }
  page.python() =
      python_head() + python_leaf("x", python_rows(request.rows), request.dtype) +
      python_line(fmt::format("loss = torch.nn.functional.cross_entropy(x, torch.tensor({}).long())",
                              python_list(ids)),
                  number_text(loss)) +
      "loss.backward()\n" + python_line("print(x.grad)", gradients);
  return page.finish(operation_next(request));
}

}  // namespace handgrad::view::explain
