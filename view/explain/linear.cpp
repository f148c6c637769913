// The page of linear: every output is a sum of products of x with one row of the weight.
#include <fmt/format.h>

#include "handgrad/core/ops.h"
#include "handgrad/core/parameter.h"
#include "handgrad/optim/sgd.h"
#include "handgrad/view/explain/page.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

struct Operands {
  std::vector<Numbers> weight;  // [out, in]
  Numbers bias;                 // [out]
  std::vector<Numbers> upstream;
};

Operands operands_of(const Request& request) {
  Operands o;
  const std::size_t in = request.rows.front().size();
  const auto found = request.options.find("weight");
  if (found == request.options.end())
    throw_error(request, "needs `weight`, a row of it for each output", {{"x", typed(request.rows)}},
                request.command + " `weight` 1,0/0,1/1,1");
  o.weight = found->second;
  for (const Numbers& row : o.weight)
    if (row.size() != in)
      throw_error(request,
                  fmt::format("`weight` needs rows of {}, one for each feature of x, got {}",
                              plural(in, "number", "numbers"), row.size()),
                  {{"x", typed(request.rows)}, {"weight", typed(o.weight)}});
  o.bias = row_option(request, "bias", o.weight.size(), 0, "output");
  o.upstream = upstream_option(request, request.rows.size(), o.weight.size());
  return o;
}

/// "(2 * 1 + 3 * 0.5) + 0.1  =  3.6"
Sentence product(const Numbers& x, const Numbers& weight, double bias, double output) {
  Sentence s;
  if (x.size() > 8) {
    s.add("sum(x * weight)");
  } else {
    s.add("(");
    for (std::size_t k = 0; k < x.size(); ++k)
      s.add(k == 0 ? "" : " + ", given(x[k]), " * ", given(weight[k]));
    s.add(")");
  }
  return s.add(" + ", given(bias), "  =  ", output);
}

void write_forward(Page& page, const Operands& o, const Numbers& x, const Numbers& y, const std::string& of) {
  page.section(Part::forward, "FORWARD" + of, x.size());
  page.row("1", "x", {}, "x", x, Origin::given);
  for (std::size_t out = 0; out < y.size(); ++out)
    page.row(out == 0 ? "2" : "", fmt::format("weight [{}]", out), {}, "", o.weight[out], Origin::given);
  page.gap();
  for (std::size_t out = 0; out < y.size(); ++out)
    page.say(out == 0 ? "3" : "", fmt::format("output [{}]", out),
             product(x, o.weight[out], o.bias[out], y[out]));
  page.note("output", y);
}

void write_backward(Page& page, const RecordedOperation& linear, const Operands& o, std::size_t row,
                    const std::string& of) {
  const Numbers dy = row_of(linear.dy, row);
  const std::size_t in = o.weight.front().size();
  page.section(Part::backward, "BACKWARD, d output" + of, dy.size());
  page.row("3", "d output", "upstream", "upstream", dy, Origin::given);
  page.section(Part::backward, "BACKWARD, d x = sum(d output * weight)" + of, in);
  page.row("", "d x", {}, "dx", row_of(linear.d_input[0], row));
}

void write_step(Page& page, const Request& request, const Operands& o, const RecordedGraph& graph,
                Parameter& weight, Parameter& bias, double lr) {
  const RecordedOperation& recorded = graph.at(0, "linear");
  const std::size_t in = o.weight.front().size(), out = o.weight.size();
  page.in_row(-1);
  page.section(Part::backward,
               request.rows.size() == 1 ? "BACKWARD, d weight = d output * x"
                                        : "BACKWARD, d weight = sum over rows of d output * x",
               in);
  for (std::size_t i = 0; i < out; ++i)
    page.row("2", fmt::format("d weight [{}]", i), {}, fmt::format("dweight_{}", i),
             row_of(recorded.d_input[1], i));
  page.section(Part::backward,
               request.rows.size() == 1 ? "BACKWARD, d bias = d output"
                                        : "BACKWARD, d bias = sum over rows of d output",
               out);
  page.row("", "d bias", {}, "dbias", recorded.d_input[2]);

  optim::Sgd sgd({{"weight", &weight, nullptr}, {"bias", &bias, nullptr}}, {.lr = lr});
  sgd.step(lr);
  const std::string rate = constant_text(lr);
  page.section(Part::step, "ONE SGD STEP, lr = " + rate, in);
  for (std::size_t i = 0; i < out; ++i)
    page.row("", fmt::format("weight [{}]", i), fmt::format("weight - {} * d weight", rate),
             fmt::format("weight_{}", i), row_of(weight.array(), i));
  page.section(Part::step, "ONE SGD STEP, bias and output", out);
  page.row("", "bias", fmt::format("bias - {} * d bias", rate), "bias", bias.array());
  for (std::size_t i = 0; i < request.rows.size(); ++i)
    page.row("", "output", "same x" + of_rows(i, request.rows.size()), fmt::format("output_{}", i),
             linear(leaf(request.rows[i], request.dtype), weight, bias).array());
}

}  // namespace

Explanation explain_linear(const Request& request) {
  const Operands o = operands_of(request);
  const double lr = number_option(request, "lr", 0.1, 0);
  const std::size_t rows = request.rows.size();
  const Tensor x = leaf(request.rows, request.dtype);
  Parameter weight("weight", leaf(o.weight, request.dtype)), bias("bias", leaf(o.bias, request.dtype));
  Tensor y;
  const RecordedGraph graph = record_graph([&] {
    y = linear(x, weight, bias);
    y.backward(leaf(o.upstream, request.dtype).array());
  });
  Page page(request, fmt::format("linear of {} of {} to {}", number_of_rows(rows),
                                 plural(x.size(kLast), "feature", "features"),
                                 plural(y.size(kLast), "output", "outputs")));
  page.given("weight", o.weight);
  page.given("bias", o.bias);
  page.given("lr", lr);
  for (std::size_t i = 0; i < rows; ++i) {
    page.in_row(i);
    const Numbers output = row_of(y.array(), i);
    write_forward(page, o, request.rows[i], output, of_rows(i, rows));
    write_backward(page, graph.at(0, "linear"), o, i, of_rows(i, rows));
  }
  page.python() = python_head() + python_leaf("x", python_rows(request.rows), request.dtype) +
                  python_leaf("weight", python_rows(o.weight), request.dtype) +
                  python_leaf("bias", python_list(o.bias), request.dtype) +
                  python_line("y = torch.nn.functional.linear(x, weight, bias)", python_expected(y.array())) +
                  python_backward("y", o.upstream, request.dtype) +
                  python_line("print(x.grad)", python_expected(x.grad())) +
                  python_line("print(weight.grad)", python_expected(weight.grad())) +
                  python_line("print(bias.grad)", signed_row(bias.grad().values()));
  write_step(page, request, o, graph, weight, bias, lr);
  return page.finish(operation_next(request));
}

}  // namespace handgrad::view::explain
