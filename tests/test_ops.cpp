// Every operation of core/ops.h against finite differences, at every row of the table.
#include <cctype>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/error.h"
#include "handgrad/core/gradcheck.h"
#include "op_table.h"
#include "paths.h"

using namespace handgrad;
using op_table::Row;

namespace {

const std::vector<Row>& rows() {
  static const std::vector<Row> all = op_table::table().rows;
  return all;
}

/// An operation that has no gradient, with an example of it for operands that want one.
struct WithoutGradient {
  const char* operation;
  std::function<Tensor(const Tensor&)> example;  ///< none where the result is not a Tensor made from one
};

const std::vector<WithoutGradient>& without_gradient() {
  static const std::vector<WithoutGradient> all = {
      {"argmax(Tensor, int)", nullptr},
      {"topk(Tensor, std::int64_t)", [](const Tensor& x) { return topk(x, 2).first; }},
      {"triu(Tensor, std::int64_t)", [](const Tensor& x) { return triu(x); }},
      {"tril(Tensor, std::int64_t)", [](const Tensor& x) { return tril(x); }},
      {"arange(std::int64_t, DType)", nullptr},
      {"arange_ids(std::int64_t)", nullptr},
      {"operator>(Tensor, Tensor)", [](const Tensor& x) { return x > x; }},
      {"operator<(Tensor, Tensor)", [](const Tensor& x) { return x < x; }},
      {"operator>=(Tensor, Tensor)", [](const Tensor& x) { return x >= x; }},
      {"operator<=(Tensor, Tensor)", [](const Tensor& x) { return x <= x; }},
      {"equal(Tensor, Tensor)", [](const Tensor& x) { return equal(x, x); }},
      {"operator>(Tensor, double)", [](const Tensor& x) { return x > 0; }},
      {"operator<(Tensor, double)", [](const Tensor& x) { return x < 0; }},
      {"operator>=(Tensor, double)", [](const Tensor& x) { return x >= 0; }},
      {"operator<=(Tensor, double)", [](const Tensor& x) { return x <= 0; }},
      {"equal(Tensor, double)", [](const Tensor& x) { return equal(x, 0); }},
  };
  return all;
}

/// The operations that stop the gradient on purpose, without an error.
const std::set<std::string> kStopsGradient = {"detach(Tensor)"};

std::string type_of(std::string parameter) {
  parameter = std::regex_replace(parameter, std::regex("=.*$|\\bconst\\b|&"), "");
  std::istringstream words(parameter);
  std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
  if (all.size() > 1) all.pop_back();  // the name
  std::string type;
  for (const std::string& word : all) type += word;
  return type;
}

struct Declared {
  std::string signature;
  bool is_inline;
};

/// What core/ops.h declares, as "add(Tensor, double)".
std::vector<Declared> declared_operations() {
  std::ifstream file(HANDGRAD_SOURCE_DIR "/core/ops.h");
  REQUIRE(file.good());
  std::string text, line;
  while (std::getline(file, line)) text += std::regex_replace(line, std::regex("//.*$|^#.*$"), "") + " ";
  text = std::regex_replace(text, std::regex("=\\s*\\{\\}"), "");
  const std::regex declaration(
      "(inline\\s+)?(?:Tensor|Ids|std::pair<Tensor, Ids>)\\s+(operator[^\\s(]+|\\w+)\\s*\\(([^()]*)\\)");
  std::vector<Declared> all;
  for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
    std::string signature = (*it)[2].str() + "(", parameter;
    std::istringstream parameters((*it)[3].str());
    for (bool first = true; std::getline(parameters, parameter, ','); first = false)
      signature += (first ? "" : ", ") + type_of(parameter);
    all.push_back({signature + ")", (*it)[1].matched});
  }
  return all;
}

std::string title(const Row& row) { return row.operation + " " + row.form; }

Tensor leaf_of(const Tensor& numbers, DType dtype) {
  return Tensor::constant(numbers.array().to(dtype)).requires_grad();
}

std::vector<Tensor> leaves(const Row& row, DType dtype) {
  std::vector<Tensor> all;
  for (const Tensor& numbers : op_table::numbers_for(row)) all.push_back(leaf_of(numbers, dtype));
  return all;
}

Tensor evaluate(const Row& row, const std::vector<Tensor>& inputs) {
  set_random_context({.seed = 7});
  return row.f(inputs);
}

Array upstream(const Tensor& y) {
  Random random(99);
  return expect::uniform_array(y.shape(), 0.5, 1.5, random, y.dtype());
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double v : values) most = std::max(most, std::abs(v));
  return most;
}

/// The largest difference beside the largest number.
double distance(const std::vector<double>& actual, const std::vector<double>& expected, double least = 0) {
  REQUIRE(actual.size() == expected.size());
  std::vector<double> differences;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    REQUIRE(std::isfinite(actual[i]));
    differences.push_back(actual[i] - expected[i]);
  }
  const double difference = largest(differences);
  return difference == 0 ? 0 : difference / std::max(largest(expected), least);
}

}  // namespace

TEST_CASE("operations: everything that core/ops.h declares is in the table") {
  std::set<std::string> known = kStopsGradient, declared;
  for (const Row& row : rows()) known.insert(row.operation);
  for (const WithoutGradient& each : without_gradient()) known.insert(each.operation);
  int functions = 0;
  for (const Declared& each : declared_operations()) {
    declared.insert(each.signature);
    functions += !each.is_inline;
    if (!each.is_inline)
      CHECK_MESSAGE(
          known.count(each.signature) == 1, each.signature,
          " has neither a row in tests/test_ops_table.cpp nor an entry among those without gradient");
  }
  CHECK(functions > 60);
  for (const std::string& name : known)
    CHECK_MESSAGE(declared.count(name) == 1, name, " is not declared in core/ops.h");
}

TEST_CASE("operations: gradients against finite differences in float64") {
  for (const Row& row : rows()) {
    INFO(title(row));
    set_random_context({.seed = 7});
    const auto report =
        check_gradients(row.f, op_table::numbers_for(row), {.tolerance = row.tolerance, .elements = 64});
    CHECK_MESSAGE(report.ok, report.text());
    for (const GradCheckEntry& entry : report.tensors) CHECK((entry.has_gradient || entry.checked == 0));
  }
}

TEST_CASE("operations: the same tensor as both operands") {
  for (const Row& row : rows()) {
    const auto numbers = op_table::numbers_for(row);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (std::size_t j = i + 1; j < numbers.size(); ++j) {
        if (numbers[i].shape() != numbers[j].shape()) continue;
        INFO(title(row), ", input ", i, " also as input ", j);
        const auto f = [&](op_table::Inputs in) {
          std::vector<Tensor> all = numbers;
          all[i] = all[j] = in[0];
          return row.f(all);
        };
        const auto report = check_gradients(f, {numbers[row.inputs[i].range == op_table::Range::any ? j : i]},
                                            {.tolerance = row.tolerance, .elements = 16});
        CHECK_MESSAGE(report.ok, report.text());
      }
    }
  }
}

TEST_CASE("operations: used twice, the gradient is twice that of one use (H28)") {
  for (const Row& row : rows()) {
    INFO(title(row));
    const auto once = leaves(row, DType::float64), twice = leaves(row, DType::float64);
    const Tensor y = evaluate(row, once);
    const Array dy = upstream(y);
    y.backward(dy);
    const Tensor weights = Tensor::constant(dy);
    const Tensor first = sum(evaluate(row, twice) * weights), second = sum(evaluate(row, twice) * weights);
    (first + second).backward();
    for (std::size_t i = 0; i < once.size(); ++i) {
      std::vector<double> doubled = once[i].grad().values();
      for (double& v : doubled) v *= 2;
      CHECK(distance(twice[i].grad().values(), doubled) <= 1e-13);
    }
  }
}

TEST_CASE("operations: only the gradients that are wanted are computed, and they are the same") {
  for (const Row& row : rows()) {
    if (row.inputs.size() < 2) continue;
    const auto all = leaves(row, DType::float64);
    const Tensor y = evaluate(row, all);
    const Array dy = upstream(y);
    y.backward(dy);
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO(title(row), ", gradient of input ", i, " alone");
      std::vector<Tensor> alone = op_table::numbers_for(row);
      alone[i].requires_grad();
      evaluate(row, alone).backward(dy);
      CHECK(distance(alone[i].grad().values(), all[i].grad().values()) <= 1e-14);
      for (std::size_t j = 0; j < all.size(); ++j) CHECK((j == i || !alone[j].has_grad()));
    }
  }
}

TEST_CASE("operations: float32 stays close to float64, forward and backward") {
  for (const Row& row : rows()) {
    INFO(title(row));
    const auto wide = leaves(row, DType::float64), narrow = leaves(row, DType::float32);
    const Tensor y64 = evaluate(row, wide), y32 = evaluate(row, narrow);
    REQUIRE(y32.dtype() == DType::float32);
    REQUIRE(y32.shape() == y64.shape());
    CHECK(distance(y32.values(), y64.values(), 1) <= 4e-6);
    const Array dy = upstream(y64);
    y64.backward(dy);
    y32.backward(dy.to(DType::float32));
    for (std::size_t i = 0; i < wide.size(); ++i)
      CHECK(distance(narrow[i].grad().values(), wide[i].grad().values(), 1) <= 2e-5);
  }
}

TEST_CASE("operations: the numbers are the same without history") {
  for (const Row& row : rows()) {
    INFO(title(row));
    const auto inputs = leaves(row, DType::float32);
    const Tensor recorded = evaluate(row, inputs);
    const NoGrad guard;
    const Tensor plain = evaluate(row, inputs);
    CHECK(expect::same_bits(recorded.array(), plain.array()));
    CHECK_FALSE(plain.has_node());
  }
}

TEST_CASE("operations: backward through one without gradient is an error that names it") {
  for (const WithoutGradient& each : without_gradient()) {
    if (each.example == nullptr) continue;
    const std::string declared = each.operation;
    INFO(declared);
    const Tensor x = expect::leaf(expect::normal({3, 3}, 5, DType::float64));
    const Tensor y = each.example(x);
    REQUIRE(y.has_node());
    CHECK(y.node().no_gradient_reason() != nullptr);
    const std::string text = expect::message<GraphError>([&] { sum(y).backward(); });
    CHECK(text.find(std::string(y.node().op()) + " has no gradient: ") != std::string::npos);
    if (declared.find("operator") != 0) CHECK(declared.find(y.node().op()) == 0);
    CHECK_FALSE(x.has_grad());
  }
}
