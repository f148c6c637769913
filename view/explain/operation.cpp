#include "handgrad/view/explain/operation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "handgrad/core/error.h"
#include "handgrad/io/near_match.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {

// A new sheet is a file with such a function, and a row of operations().
Explanation explain_layer_norm(const Request& request);
Explanation explain_rms_norm(const Request& request);
Explanation explain_linear(const Request& request);
Explanation explain_attention(const Request& request);
Explanation explain_softmax(const Request& request);
Explanation explain_gelu(const Request& request);
Explanation explain_cross_entropy(const Request& request);
Explanation explain_adam(const Request& request);

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all{
      {"layer_norm",
       "mean 0 and variance 1, then scale and shift",
       "2 2 6 6",
       {"eps", "scale", "shift", "upstream", "lr"},
       explain_layer_norm},
      {"rms_norm", "mean square 1, then scale", "1 7", {"eps", "scale", "upstream", "lr"}, explain_rms_norm},
      {"linear",
       "sums of products, and a bias",
       "2 3 --weight 1,0/0,1/1,1",
       {"weight", "bias", "upstream", "lr"},
       explain_linear},
      {"attention",
       "one head; queries, keys and values are x itself",
       "1 0 / 0 1 / 1 1",
       {"queries", "keys", "values", "upstream"},
       explain_attention},
      {"gelu", "x times the probability of a number below it", "-1 0 1", {"upstream"}, explain_gelu},
      {"softmax", "numbers become probabilities", "1 2 3", {"upstream"}, explain_softmax},
      {"cross_entropy",
       "how improbable the target was",
       "2 1 0 --target 0",
       {"target"},
       explain_cross_entropy},
      {"adam",
       "one parameter, given the gradient of each step",
       "0.1 -0.2 0.3",
       {"start", "lr", "betas", "eps", "weight-decay"},
       explain_adam},
  };
  return all;
}

const std::vector<Option>& options() {
  static const std::vector<Option> all{
      {"eps", "E", "added under the root (default 0.00001); 0: without it", false},
      {"scale", "LIST", "one number for each feature, 1,1,2,1 (default: ones)", true},
      {"shift", "LIST", "one number for each feature (default: zeros)", true},
      {"upstream", "LIST", "the gradient of the loss by each output (default: 1,0,0,...)", true},
      {"lr", "L", "learning rate of the step (default 0.1; adam's 0.001)", false},
      {"weight", "ROWS", "of linear: a row for each output, 1,0/0,1", true},
      {"bias", "LIST", "of linear: one number for each output (default: zeros)", true},
      {"queries", "ROWS", "of attention: a row for each token (default: x)", true},
      {"keys", "ROWS", "of attention: a row for each token (default: x)", true},
      {"values", "ROWS", "of attention: a row for each token (default: x)", true},
      {"target", "LIST", "of cross_entropy: the correct index in each row (default 0)", false},
      {"start", "X", "of adam: the parameter before the first step (default 1)", false},
      {"betas", "LIST", "of adam: the decay of both averages (default 0.9,0.999)", false},
      {"weight-decay", "W", "of adam: subtracted from the value itself, as in AdamW (default 0)", false},
  };
  return all;
}

const Operation* find_operation(const std::string& name) {
  for (const Operation& operation : operations())
    if (name == operation.name) return &operation;
  return nullptr;
}

void throw_error(const Request& request, const std::string& rule,
                 std::vector<std::pair<std::string, std::string>> operands, const std::string& advice) {
  if (!advice.empty()) operands.emplace_back("try", advice);
  std::size_t width = 0;
  for (const auto& operand : operands) width = std::max(width, operand.first.size());
  std::string message = rule;
  for (const auto& [name, text] : operands) message += fmt::format("\n  {:<{}}  {}", name, width, text);
  throw ValueError("explain " + request.operation, message);
}

namespace {

std::string joined(const Numbers& row, const char* between) {
  std::vector<std::string> words;
  for (const double value : row) words.push_back(constant_text(value));
  return fmt::format("{}", fmt::join(words, between));
}

/// A page shows as given what the engine was given.
void round_to_float(Numbers& row) {
  for (double& number : row) number = static_cast<double>(static_cast<float>(number));
}

/// `row` cut or filled up to `width` numbers.
Numbers fitted(Numbers row, std::size_t width, double filler) {
  row.resize(width, filler);
  return row;
}

}  // namespace

std::string typed(const std::vector<Numbers>& rows) {
  std::string text;
  for (const Numbers& row : rows) text += (text.empty() ? "" : " / ") + joined(row, " ");
  return text;
}

Explanation explain(const Request& request) {
  const Operation* operation = find_operation(request.operation);
  if (operation == nullptr) throw_error(request, "there is no such operation");
  const auto check = [&](const std::string& name) {
    for (const char* known : operation->options)
      if (name == known) return;
    std::vector<std::string> names;
    for (const char* known : operation->options) names.push_back(fmt::format("`{}`", known));
    throw_error(request, fmt::format("takes no `{}`; it takes {}", name, listed(names, "and")));
  };
  for (const auto& [name, rows] : request.options) check(name);
  if (request.rows.empty() || request.rows.front().empty())
    throw_error(request, "needs numbers; rows are separated by a slash", {},
                fmt::format("`handgrad` explain {} {}", operation->name, operation->example));
  const std::size_t width = request.rows.front().size();
  for (std::size_t i = 1; i < request.rows.size(); ++i)
    if (request.rows[i].size() != width)
      throw_error(request,
                  fmt::format("every row needs as many numbers as the first, {}, got {} in row {}", width,
                              request.rows[i].size(), i + 1),
                  {{"x", typed(request.rows)}});
  if (request.dtype != DType::float32) return operation->explain(request);
  Request narrow = request;
  for (Numbers& row : narrow.rows) round_to_float(row);
  for (const Option& option : options())
    if (const auto found = narrow.options.find(option.name); option.tensor && found != narrow.options.end())
      for (Numbers& row : found->second) round_to_float(row);
  return operation->explain(narrow);
}

double number_option(const Request& request, const std::string& name, double otherwise, double least) {
  const auto found = request.options.find(name);
  if (found == request.options.end()) return otherwise;
  if (found->second.size() != 1 || found->second.front().size() != 1)
    throw_error(request, fmt::format("`{}` needs one number, got {}", name, typed(found->second)));
  const double value = found->second.front().front();
  if (!(value >= least))
    throw_error(request, fmt::format("`{}` must be at least {}, got {}", name, constant_text(least),
                                     constant_text(value)));
  return value;
}

Numbers row_option(const Request& request, const std::string& name, std::size_t width, double otherwise,
                   const char* of) {
  const auto found = request.options.find(name);
  if (found == request.options.end()) return Numbers(width, otherwise);
  if (found->second.size() != 1)
    throw_error(request, fmt::format("`{}` needs one row, got {}", name, found->second.size()),
                {{name, typed(found->second)}});
  const Numbers& row = found->second.front();
  if (row.size() != width)
    throw_error(request,
                fmt::format("`{}` needs {}, one for each {}, got {}", name,
                            plural(width, "number", "numbers"), of, row.size()),
                {{"x", typed(request.rows)}, {name, typed(found->second)}},
                fmt::format("`{}` {}", name, joined(fitted(row, width, otherwise), ",")));
  return row;
}

std::vector<Numbers> upstream_option(const Request& request, std::size_t rows, std::size_t width) {
  Numbers first(width, 0.0);
  first.front() = 1;
  const auto found = request.options.find("upstream");
  if (found == request.options.end()) return std::vector<Numbers>(rows, first);
  std::vector<Numbers> upstream = found->second;
  const auto throw_size = [&](const std::string& got) {
    throw_error(request,
                fmt::format("`upstream` needs {}, one for each number of the output, got {}",
                            plural(width, "number", "numbers"), got),
                {{"x", typed(request.rows)}, {"upstream", typed(upstream)}},
                "`upstream` " + joined(fitted(upstream.front(), width, 0), ","));
  };
  for (const Numbers& row : upstream)
    if (row.size() != width) throw_size(fmt::format("{}", row.size()));
  if (upstream.size() == 1) upstream.resize(rows, upstream.front());
  if (upstream.size() != rows)
    throw_error(request,
                fmt::format("`upstream` needs one row, or one for each of the {} rows of x, got {}", rows,
                            upstream.size()),
                {{"x", typed(request.rows)}, {"upstream", typed(upstream)}});
  return upstream;
}

}  // namespace handgrad::view::explain
