// The page of attention: one head, a few tokens, each of which attends to itself and to those before it.
#include <fmt/format.h>

#include <cmath>

#include "handgrad/core/ops.h"
#include "handgrad/view/explain/page.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

struct Operands {
  std::vector<Numbers> queries, keys, values, upstream;  // [T, D]
};

std::vector<Numbers> rows_option(const Request& request, const char* name) {
  const auto found = request.options.find(name);
  if (found == request.options.end()) return request.rows;
  const std::vector<Numbers>& rows = found->second;
  bool fits = rows.size() == request.rows.size();
  for (const Numbers& row : rows) fits = fits && row.size() == request.rows.front().size();
  if (!fits)
    throw_error(request,
                fmt::format("`{}` needs rows like those of x: {} of {}", name, request.rows.size(),
                            plural(request.rows.front().size(), "number", "numbers")),
                {{"x", typed(request.rows)}, {name, typed(rows)}});
  return rows;
}

Operands operands_of(const Request& request) {
  const std::size_t width = request.rows.front().size(), tokens = request.rows.size();
  Operands o{rows_option(request, "queries"), rows_option(request, "keys"), rows_option(request, "values"),
             std::vector<Numbers>(tokens, Numbers(width, 0.0))};
  o.upstream.back().front() = 1;
  if (request.options.contains("upstream")) o.upstream = upstream_option(request, tokens, width);
  return o;
}

/// [1, T, 3D]: queries, keys and values of each token one after another.
Tensor joined(const Operands& o, DType dtype) {
  std::vector<Numbers> rows;
  for (std::size_t t = 0; t < o.queries.size(); ++t) {
    rows.push_back(o.queries[t]);
    for (const std::vector<Numbers>* more : {&o.keys, &o.values})
      rows.back().insert(rows.back().end(), (*more)[t].begin(), (*more)[t].end());
  }
  const Tensor flat = leaf(rows, dtype);
  return Tensor::constant(flat.array().reshape({1, flat.size(0), flat.size(1)})).requires_grad();
}

/// The graph of causal_attention_composed. Its first nine operations cut queries, keys and values out.
struct Graph {
  explicit Graph(const RecordedGraph& graph)
      : query(graph.at(2, "permute")),
        key(graph.at(5, "permute")),
        value(graph.at(8, "permute")),
        scores(graph.at(9, "matmul")),
        masked(graph.at(10, "masked_fill")),
        scaled(graph.at(11, "div")),
        weights(graph.at(12, "softmax")),
        mixed(graph.at(13, "matmul")) {}

  const RecordedOperation &query, &key, &value, &scores, &masked, &scaled, &weights, &mixed;
};

/// A line for each token.
void write_rows(Page& page, const std::string& number, const std::string& label, const std::string& formula,
                const std::string& key, const Array& array, Origin origin = Origin::computed) {
  const std::int64_t rows = array.numel() / array.shape().last();
  for (std::int64_t t = 0; t < rows; ++t)
    page.row(t == 0 ? number : "", fmt::format("{} [{}]", label, t), t == 0 ? formula : "",
             fmt::format("{}_{}", key, t), row_of(array, t), origin);
}

void write_forward(Page& page, const Graph& g, std::size_t width, std::size_t tokens) {
  page.section(Part::forward, "FORWARD, a line for each token", width);
  write_rows(page, "1", "query", "what it looks for", "query", g.query.y, Origin::given);
  write_rows(page, "2", "key", "what it is found by", "key", g.key.y, Origin::given);
  write_rows(page, "3", "value", "what it has to say", "value", g.value.y, Origin::given);
  page.section(Part::forward, "FORWARD, columns: the tokens that are looked at", tokens);
  write_rows(page, "4", "score", "sum(query * key)", "score", g.scores.y);
  write_rows(page, "5", "masked", "the future is -inf", "masked", g.masked.y);
  write_rows(page, "6", "scaled", fmt::format("masked / sqrt({})", width), "scaled", g.scaled.y);
  write_rows(page, "7", "weight", "softmax of the line", "weight", g.weights.y);
  page.section(Part::forward, "FORWARD, what each token takes along", width);
  write_rows(page, "8", "output", "sum(weight * value)", "output", g.mixed.y);
}

void write_backward(Page& page, const Graph& g, std::size_t width, std::size_t tokens) {
  page.section(Part::backward, "BACKWARD, a line for each token", width);
  write_rows(page, "8", "d output", "upstream", "upstream", g.mixed.dy, Origin::given);
  write_rows(page, "3", "d value", "sum(weight * d output)", "d_value", g.mixed.d_input[1]);
  page.section(Part::backward, "BACKWARD, columns: the tokens that were looked at", tokens);
  write_rows(page, "7", "d weight", "sum(d output * value)", "d_weight", g.weights.dy);
  write_rows(page, "6", "d scaled", "weight * (d weight - sum)", "d_scaled", g.scaled.dy);
  page.say("sum: of d weight * weight over the line");
  write_rows(page, "5", "d masked", fmt::format("d scaled / sqrt({})", width), "d_masked", g.masked.dy);
  write_rows(page, "4", "d score", "0 in the future", "d_score", g.scores.dy);
  page.section(Part::backward, "BACKWARD, to queries and keys", width);
  write_rows(page, "1", "d query", "sum(d score * key)", "d_query", g.query.dy);
  write_rows(page, "2", "d key", "sum(d score * query)", "d_key", g.key.dy);
}

}  // namespace

Explanation explain_attention(const Request& request) {
  const Operands o = operands_of(request);
  const std::size_t width = request.rows.front().size(), tokens = request.rows.size();
  const Tensor qkv = joined(o, request.dtype);
  const RecordedGraph recorded = record_graph([&] {
    const Tensor y = causal_attention_composed(qkv, 1);
    y.backward(leaf(o.upstream, request.dtype).array().reshape(y.shape()));
  });
  const Graph graph(recorded);
  Page page(request, fmt::format("attention of {} with {} each, one head", plural(tokens, "token", "tokens"),
                                 plural(width, "number", "numbers")));
  write_forward(page, graph, width, tokens);
  write_backward(page, graph, width, tokens);
  std::string& code = page.python();
  code = python_head();
  for (const auto& [name, rows] :
       {std::pair{"query", &o.queries}, std::pair{"key", &o.keys}, std::pair{"value", &o.values}})
    code += python_leaf(name, python_rows(*rows), request.dtype);
  code += "score = query @ key.T\n";
  code += "future = torch.triu(torch.ones_like(score), diagonal=1).bool()\n";
  code += fmt::format("weight = torch.softmax(score.masked_fill(future, -torch.inf) / {} ** 0.5, dim=-1)\n",
                      width);
  code += python_line("output = weight @ value", python_expected(graph.mixed.y));
  code += python_backward("output", o.upstream, request.dtype);
  code += python_line("print(query.grad)", python_expected(graph.query.dy));
  code += python_line("print(key.grad)", python_expected(graph.key.dy));
  code += python_line("print(value.grad)", python_expected(graph.value.dy));
  return page.finish(operation_next(request));
}

}  // namespace handgrad::view::explain
