#include "handgrad/train/explain/operation.h"

#include <fmt/format.h>

#include <algorithm>

#include "handgrad/core/error.h"
#include "handgrad/nn/near_match.h"
#include "handgrad/train/explain/sheets.h"
#include "handgrad/train/program_name.h"
#include "handgrad/train/text.h"

namespace handgrad::train::explain {

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
       "how surprised a model is by the target",
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

const Operation* find_operation(const std::string& name) {
  for (const Operation& operation : operations())
    if (name == operation.name) return &operation;
  return nullptr;
}

void refuse(const Request& request, const std::string& rule,
            std::vector<std::pair<std::string, std::string>> operands, const std::string& advice) {
  if (!advice.empty()) operands.emplace_back("try", advice);
  std::size_t width = 0;
  for (const auto& operand : operands) width = std::max(width, operand.first.size());
  std::string message = rule;
  for (const auto& [name, text] : operands) message += fmt::format("\n  {:<{}}  {}", name, width, text);
  throw ValueError("explain " + request.operation, message);
}

std::string typed(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    if (!text.empty()) text += " / ";
    for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : " ") + constant_text(row[i]);
  }
  return text;
}

namespace {

std::string comma_separated(const Row& row) {
  std::string text;
  for (const double value : row) text += (text.empty() ? "" : ",") + constant_text(value);
  return text;
}

/// What a page shows as given is what the engine was given.
void round_to_float(Row& row) {
  for (double& number : row) number = static_cast<double>(static_cast<float>(number));
}

/// `row` with as many numbers as there must be.
Row fitted(Row row, std::size_t width, double filler) {
  row.resize(width, filler);
  return row;
}

}  // namespace

Explanation explain(const Request& request) {
  const Operation* operation = find_operation(request.operation);
  if (operation == nullptr) refuse(request, "there is no such operation");
  const auto check = [&](const std::string& name) {
    for (const char* known : operation->options)
      if (name == known) return;
    std::vector<std::string> names;
    for (const char* known : operation->options) names.push_back(std::string("--") + known);
    refuse(request, fmt::format("takes no --{}; it takes {}", name, listed(names, "and")));
  };
  for (const auto& [name, rows] : request.lists) check(name);
  for (const auto& [name, word] : request.words) check(name);
  if (request.rows.empty() || request.rows.front().empty())
    refuse(request, "needs numbers; rows are parted by a slash", {},
           fmt::format("{} explain {} {}", program_name(), operation->name, operation->example));
  const std::size_t width = request.rows.front().size();
  for (std::size_t i = 1; i < request.rows.size(); ++i)
    if (request.rows[i].size() != width)
      refuse(request,
             fmt::format("every row needs as many numbers as the first, {}, got {} in row {}", width,
                         request.rows[i].size(), i + 1),
             {{"x", typed(request.rows)}});
  if (request.dtype != DType::float32) return operation->explain(request);
  Request narrow = request;
  for (Row& row : narrow.rows) round_to_float(row);
  for (const char* name : {"scale", "shift", "upstream", "weight", "bias", "keys", "values"})
    if (const auto found = narrow.lists.find(name); found != narrow.lists.end())
      for (Row& row : found->second) round_to_float(row);
  return operation->explain(narrow);
}

double number_option(const Request& request, const std::string& name, double otherwise, double least) {
  const auto found = request.lists.find(name);
  if (found == request.lists.end()) return otherwise;
  if (found->second.size() != 1 || found->second.front().size() != 1)
    refuse(request, fmt::format("--{} needs one number, got {}", name, typed(found->second)));
  const double value = found->second.front().front();
  if (!(value >= least))
    refuse(request,
           fmt::format("--{} must be at least {}, got {}", name, constant_text(least), constant_text(value)));
  return value;
}

Row row_option(const Request& request, const std::string& name, std::size_t width, double otherwise,
               const char* of) {
  const auto found = request.lists.find(name);
  if (found == request.lists.end()) return Row(width, otherwise);
  if (found->second.size() != 1)
    refuse(request, fmt::format("--{} needs one row, got {}", name, found->second.size()),
           {{name, typed(found->second)}});
  const Row& row = found->second.front();
  if (row.size() != width)
    refuse(request,
           fmt::format("--{} needs {}, one for each {}, got {}", name,
                       plural(static_cast<std::int64_t>(width), "number", "numbers"), of, row.size()),
           {{"x", typed(request.rows)}, {name, typed(found->second)}},
           fmt::format("--{} {}", name, comma_separated(fitted(row, width, otherwise))));
  return row;
}

std::vector<Row> upstream_option(const Request& request, std::size_t rows, std::size_t width) {
  Row first(width, 0.0);
  first.front() = 1;
  const auto found = request.lists.find("upstream");
  if (found == request.lists.end()) return std::vector<Row>(rows, first);
  std::vector<Row> upstream = found->second;
  const auto refuse_size = [&](const std::string& came) {
    refuse(request,
           fmt::format("--upstream needs {}, one for each number of the output, got {}",
                       plural(static_cast<std::int64_t>(width), "number", "numbers"), came),
           {{"x", typed(request.rows)}, {"upstream", typed(upstream)}},
           "--upstream " + comma_separated(fitted(upstream.front(), width, 0)));
  };
  for (const Row& row : upstream)
    if (row.size() != width) refuse_size(fmt::format("{}", row.size()));
  if (upstream.size() == 1) upstream.resize(rows, upstream.front());
  if (upstream.size() != rows)
    refuse(request,
           fmt::format("--upstream needs one row, or one for each of the {} rows of x, got {}", rows,
                       upstream.size()),
           {{"x", typed(request.rows)}, {"upstream", typed(upstream)}});
  return upstream;
}

}  // namespace handgrad::train::explain
