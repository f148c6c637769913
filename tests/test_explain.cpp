// explain: every line of an operation's arithmetic, on paper, from what the engine recorded.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/ops.h"
#include "handgrad/view/explain/operation.h"
#include "program.h"
#include "temporary_folder.h"

using namespace handgrad;
using namespace handgrad::view;
using explain::Numbers;
using nlohmann::json;

namespace {

/// The page that design and article agree on, every digit of it.
const char* const kPage =
    R"(layer_norm of one row of 4 features, float64. Every number is read from the recorded graph.

FORWARD                                                      [0]         [1]         [2]         [3]
  1  x                                                         2           2           6           6
  2  mean          (2 + 2 + 6 + 6) / 4  =  16 / 4  =  4
  3  centered      x - mean                                   -2          -2           2           2
  4  squared       centered * centered                         4           4           4           4
  5  variance      (4 + 4 + 4 + 4) / 4  =  16 / 4  =  4        divided by 4, not by 4 - 1
  6  deviation     sqrt(4)  =  2
  7  normalized    centered / deviation                       -1          -1           1           1

     eps = 0.00001 goes under the root: a row of equal numbers is then not divided by zero
  6  deviation     sqrt(4 + 0.00001)  =  2.0000025
  7  normalized    centered / deviation              -0.99999875 -0.99999875  0.99999875  0.99999875

     two trainable numbers for each feature, shared by all rows
  8  scale         starts as ones                              1           1           1           1
  9  shift         starts as zeros                             0           0           0           0
 10  output        scale * normalized + shift        -0.99999875 -0.99999875  0.99999875  0.99999875
     check         mean 0, variance 4 / 4.00001 = 0.9999975: eps is why it is not exactly 1

BACKWARD, eps left out to follow by hand                     [0]         [1]         [2]         [3]
     d scale = how fast the loss grows when scale grows. The loss here is output [0] itself,
     so the upstream gradient is 1 0 0 0. Numbers on the left: the forward line walked back.

 10  d output      upstream                                    1           0           0           0
     d shift       d output                                    1           0           0           0
     d scale       d output * normalized                      -1           0           0           0
     d normalized  d output * scale                            1           0           0           0
  7  d centered    d normalized / deviation                  0.5           0           0           0
     d deviation   -sum(d normalized * centered) / deviation^2  =  -(1 * -2) / 4  =  0.5
  6  d variance    d deviation / (2 * deviation)  =  0.5 / 4  =  0.125
  5  d squared     d variance / 4                        0.03125     0.03125     0.03125     0.03125
  4  d centered    + d squared * 2 * centered             -0.125      -0.125       0.125       0.125
                     both together                         0.375      -0.125       0.125       0.125
  3  d x           d centered                              0.375      -0.125       0.125       0.125
     d mean        -sum(d centered)  =  -(0.375 - 0.125 + 0.125 + 0.125)  =  -0.5
  2  d x           + d mean / 4                           -0.125      -0.125      -0.125      -0.125
                     both together                          0.25       -0.25           0           0
     check         d x adds up to 0: adding 1 to every x changes no output

THE SAME IN ONE FORMULA                                      [0]         [1]         [2]         [3]
     d x = (g - mean(g) - normalized * mean(g * normalized)) / deviation,   g = scale * d output
     g                                                         1           0           0           0
     - mean(g)                     = -(1 / 4)              -0.25       -0.25       -0.25       -0.25
     - normalized * mean(g * normalized)                   -0.25       -0.25        0.25        0.25
     sum of the three                                        0.5        -0.5           0           0
     d x           sum / deviation                          0.25       -0.25           0           0

WITH eps = 0.00001, as in training                           [0]         [1]         [2]         [3]
     d scale                                         -0.99999875           0           0           0
     d shift                                                   1           0           0           0
     d x                                                    0.25 -0.24999938   -3.12e-07   -3.12e-07

ONE SGD STEP, lr = 0.1                                       [0]         [1]         [2]         [3]
     scale         scale - 0.1 * d scale             1.099999875           1           1           1
     shift         shift - 0.1 * d shift                    -0.1           0           0           0
     output        same x, new scale and shift        -1.1999985 -0.99999875  0.99999875  0.99999875
     check         the loss, output [0], fell from -0.99999875 to -1.1999985

next   handgrad explain layer_norm 1 7 9 15                      unequal distances, still exact
       handgrad explain layer_norm 2 2 6 6 --upstream 1,1,1,1    why is d x 0 now?
)";

std::string explained(const std::string& arguments) {
  const TemporaryFolder folder;
  const Outcome outcome = handgrad_in(folder.path(), "explain " + arguments);
  CHECK_MESSAGE(outcome.status == 0, outcome.err);
  return outcome.out;
}

json explained_json(const std::string& arguments) { return json::parse(explained(arguments + " --json")); }

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("explain layer_norm 2 2 6 6 prints the article's page, digit by digit") {
  CHECK(explained("layer_norm 2 2 6 6") == kPage);
}

TEST_CASE("explain layer_norm 1 7 9 15: unequal distances, and what a page of it says") {
  const std::string page = explained("layer_norm 1 7 9 15 --eps 0");
  CHECK(has(page, "  2  mean          (1 + 7 + 9 + 15) / 4  =  32 / 4  =  8\n"));
  CHECK(has(page,
            "  4  squared       centered * centered                        49           1           1        "
            "  49\n"));
  CHECK(has(page, "  6  deviation     sqrt(25)  =  5\n"));
  CHECK(has(page,
            "  7  normalized    centered / deviation                     -1.4        -0.2         0.2        "
            " 1.4\n"));
  CHECK(has(page,
            "     d x           sum / deviation                         0.052      -0.064      -0.036       "
            "0.048\n"));
  CHECK(!has(page, "WITH eps"));  // one set of numbers only
  CHECK(!has(page, "eps left out"));
}

TEST_CASE("explain layer_norm: without eps the gradients are whole numbers") {
  for (const char* key : {"backward", "backward_without_eps"}) {
    const json backward = explained_json("layer_norm 2 2 6 6 --eps 0")[key];
    CHECK(backward["dx"] == json{{0.25, -0.25, 0, 0}});
    CHECK(backward["dscale"] == json{-1, 0, 0, 0});
    CHECK(backward["dshift"] == json{1, 0, 0, 0});
    CHECK(backward["upstream"] == json{{1, 0, 0, 0}});
    CHECK(backward["dx_terms"] ==
          json{{{1, 0, 0, 0}, {-0.25, -0.25, -0.25, -0.25}, {-0.25, -0.25, 0.25, 0.25}}});
    CHECK(backward["dx_by_formula"] == backward["dx"]);
  }
  CHECK(explained_json("layer_norm 2 2 6 6")["backward_without_eps"]["dx"] == json{{0.25, -0.25, 0, 0}});
}

TEST_CASE("explain layer_norm --json is the library in float64, to the last digit") {
  const json page = explained_json(
      "layer_norm 0.3 -1.7 2.25 0.1 5 --scale 0.5,1,-1.5,2,0.25 --shift 0.1,0.2,0.3,0.4,0.5 --upstream "
      "0.7,-0.3,0.2,1.1,-0.9 --eps 0.001 --lr 0.01");
  const Tensor x = expect::leaf({0.3, -1.7, 2.25, 0.1, 5}, DType::float64),
               scale = expect::leaf({0.5, 1, -1.5, 2, 0.25}, DType::float64),
               shift = expect::leaf({0.1, 0.2, 0.3, 0.4, 0.5}, DType::float64);
  const Tensor output = layer_norm_composed(x, scale, shift, 0.001);
  output.backward(Tensor::of({0.7, -0.3, 0.2, 1.1, -0.9}, DType::float64).array());
  CHECK(page["rows"][0]["output"].get<Numbers>() == output.values());
  CHECK(page["backward"]["dx"][0].get<Numbers>() == x.grad().values());
  CHECK(page["backward"]["dscale"].get<Numbers>() == scale.grad().values());
  CHECK(page["backward"]["dshift"].get<Numbers>() == shift.grad().values());
  // The form that trains, to rounding.
  const Tensor x2 = expect::leaf({0.3, -1.7, 2.25, 0.1, 5}, DType::float64);
  const Tensor fused = layer_norm(x2, scale, shift, 0.001);
  fused.backward(Tensor::of({0.7, -0.3, 0.2, 1.1, -0.9}, DType::float64).array());
  expect::within_ulps(fused.array(), output.array());
  expect::within_ulps(x2.grad(), x.grad(), 8);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(page["sgd"]["scale"][i].get<double>() == scale.array().value(static_cast<std::int64_t>(i)) -
                                                       0.01 * page["backward"]["dscale"][i].get<double>());
  CHECK(page["sgd"]["loss_after"].get<double>() < page["sgd"]["loss_before"].get<double>());
}

namespace {

/// The same arithmetic, by plain loops and by the closed form, with nothing of the engine in it.
struct ByHand {
  Numbers normalized, output, d_scale, d_x;
  double mean = 0, variance = 0, deviation = 0;

  ByHand(const Numbers& x, const Numbers& scale, const Numbers& shift, const Numbers& upstream, double eps) {
    const auto n = static_cast<double>(x.size());
    for (const double v : x) mean += v;
    mean /= n;
    for (const double v : x) variance += (v - mean) * (v - mean);
    variance /= n;
    deviation = std::sqrt(variance + eps);
    double mean_g = 0, mean_gn = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      normalized.push_back((x[i] - mean) / deviation);
      output.push_back(scale[i] * normalized[i] + shift[i]);
      d_scale.push_back(upstream[i] * normalized[i]);
      mean_g += scale[i] * upstream[i] / n;
      mean_gn += scale[i] * upstream[i] * normalized[i] / n;
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      d_x.push_back((scale[i] * upstream[i] - mean_g - normalized[i] * mean_gn) / deviation);
  }
};

/// Equal up to rounding, `size` being how large such numbers are.
bool close(double a, double b, double size) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= 1e-10 * size;
}

double number(const json& json) {
  if (!json.is_string()) return json.get<double>();
  return json == "NaN" ? std::nan("") : json == "Infinity" ? INFINITY : -INFINITY;
}

Numbers numbers(const json& list) {
  Numbers row;
  for (const json& one : list) row.push_back(number(one));
  return row;
}

void check_row(const Numbers& got, const Numbers& expected, double size) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK_MESSAGE(close(got[i], expected[i], size), got[i], " ", expected[i]);
}

}  // namespace

TEST_CASE("explain layer_norm agrees with independent arithmetic on a thousand rows") {
  Random random(2266);
  for (int i = 0; i < 1000; ++i) {
    const auto width = static_cast<std::size_t>(1 + i % 12);
    const double size = std::pow(10.0, (i / 12) % 13 - 6);  // 1e-6 to 1e6
    Numbers x(width), scale(width), shift(width), upstream(width);
    for (std::size_t j = 0; j < width; ++j) {
      x[j] = i % 10 == 9 ? size : size * random.uniform(-1, 1);  // every tenth row is constant
      scale[j] = random.uniform(-2, 2);
      shift[j] = random.uniform(-2, 2);
      upstream[j] = random.uniform(-1, 1);
    }
    const double eps = i % 3 == 0 ? 1e-5 : 0.1;
    CAPTURE(i);
    const explain::Explanation page = explain::explain(
        {.operation = "layer_norm",
         .rows = {x},
         .options = {{"scale", {scale}}, {"shift", {shift}}, {"upstream", {upstream}}, {"eps", {{eps}}}},
         .command = "handgrad explain layer_norm ..."});
    const json all = json::parse(page.json), row = all["rows"][0], backward = all["backward"];
    const ByHand hand(x, scale, shift, upstream, eps);
    CHECK(close(row["mean"], hand.mean, size));
    CHECK(close(row["variance"], hand.variance, size * size));
    CHECK(close(row["deviation"], hand.deviation, hand.deviation));
    check_row(row["normalized"], hand.normalized, 1);
    check_row(row["output"], hand.output, 2);
    check_row(backward["dscale"], hand.d_scale, 1);
    check_row(backward["dx"][0], hand.d_x, 2 / hand.deviation);
    check_row(backward["dshift"], upstream, 1);
    // The sum of the closed form's three terms is the result of the way through every line.
    check_row(backward["dx_by_formula"][0], backward["dx"][0], 2 / hand.deviation);
    // The optimizer rounds once.
    for (std::size_t j = 0; j < width; ++j)
      CHECK(all["sgd"]["scale"][j].get<double>() ==
            std::fma(-0.1, backward["dscale"][j].get<double>(), scale[j]));
    CHECK(widest_line(explain::text(page.sheet, {})) <= 100);
  }
}

TEST_CASE("explain layer_norm: rows at the edges of what can be normalized") {
  const double nan = std::nan(""), inf = INFINITY;
  const std::vector<Numbers> rows{
      {5, 5, 5, 5}, {7},   {1e150, -1e150, 2e150, 0}, {1e-150, -1e-150, 2e-150, 0}, {1, nan, 2}, {1, inf, 2},
      {-inf, inf},  {0, 0}};
  for (const Numbers& row : rows) {
    CAPTURE(row[0]);
    const explain::Explanation page = explain::explain(
        {.operation = "layer_norm", .rows = {row}, .command = "handgrad explain layer_norm"});
    Numbers upstream(row.size(), 0.0);
    upstream[0] = 1;
    const ByHand hand(row, Numbers(row.size(), 1.0), Numbers(row.size(), 0.0), upstream, 1e-5);
    const json lines = json::parse(page.json)["rows"][0];
    check_row(numbers(lines["normalized"]), hand.normalized, 1);
    check_row(numbers(lines["output"]), hand.output, 1);
    const std::string text = explain::text(page.sheet, {});
    CHECK(widest_line(text) <= 100);
    CHECK(has(text, "0 / 0: not defined without eps") == (hand.variance == 0));
  }
  CHECK(has(explained("layer_norm 0.1 0.1 0.1"),
            "0 / 0: not defined without eps"));  // the mean of these rounds
  CHECK(explained_json("layer_norm 1 nan 2")["rows"][0]["mean"] == "NaN");
  CHECK(explained_json("layer_norm 1 inf 2")["rows"][0]["x"][1] == "Infinity");
  CHECK(explained_json("layer_norm 3 3 3")["backward"]["dx"] ==
        explained_json("layer_norm 0 0 0")["backward"]["dx"]);
}

TEST_CASE("explain layer_norm: several rows, each by itself, share scale and shift") {
  const json page = explained_json("layer_norm 2 2 6 6 / 10 10 14 14 --eps 0 --upstream 1,0,0,0/0,0,0,2");
  CHECK(page["rows"][0]["normalized"] == page["rows"][1]["normalized"]);
  CHECK(page["backward"]["dscale"] == json{-1, 0, 0, 2});
  CHECK(page["backward"]["dshift"] == json{1, 0, 0, 2});
  CHECK(page["backward"]["dx"][0] == json{0.25, -0.25, 0, 0});
  CHECK(page["backward"]["dx"][1] == json{0, 0, -0.5, 0.5});
  const std::string text = explained("layer_norm 2 2 6 6 / 10 10 14 14");
  CHECK(has(text, "layer_norm of 2 rows of 4 features, each by itself, float64."));
  CHECK(has(text, "FORWARD, row 2 of 2"));
  CHECK(has(
      text,
      "     d scale       row 1                                      -1           0           0           0\n"
      "     d scale       + row 2                                    -1           0           0           0\n"
      "                     all together                             -2           0           0           "
      "0\n"));
}

TEST_CASE("explain layer_norm: wide rows are shortened in the text and whole in JSON") {
  const std::string twelve = "layer_norm 1 2 3 4 5 6 7 8 9 10 11 13";
  const std::string text = explained(twelve);
  CHECK(widest_line(text) <= 100);
  CHECK(has(
      text,
      "FORWARD                                                  [0]         [1]         [2] ...        [11]\n"
      "  1  x                                                     1           2           3              13\n"
      "  2  mean          sum 79 / 12  =  6.5833333\n"));
  CHECK(explained_json(twelve)["rows"][0]["centered"].size() == 12);
  const std::string six = explained("layer_norm 1 2 3 4 5 6.125");
  CHECK(widest_line(six) <= 100);
  CHECK(has(six, "  3  centered      x - mean\n"));
  CHECK(has(six, "  2  mean          (1 + 2 + 3 + 4 + 5 + 6.125) / 6  =  21.125 / 6  =  3.5208333\n"));
}

TEST_CASE("explain layer_norm: parts, a work sheet, another type") {
  const std::string forward = explained("layer_norm 2 2 6 6 --part forward");
  CHECK(has(forward, "FORWARD"));
  CHECK(!has(forward, "BACKWARD"));
  CHECK(!has(forward, "SGD"));
  CHECK(has(explained("layer_norm 2 2 6 6 --part step"), "ONE SGD STEP"));
  const std::string blank = explained("layer_norm 2 2 6 6 --blank");
  CHECK(has(
      blank,
      "  1  x                                                         2           2           6           6\n"
      "  2  mean          (2 + 2 + 6 + 6) / 4  =  ____ / 4  =  ____\n"
      "  3  centered      x - mean                                 ____        ____        ____        "
      "____\n"));
  CHECK(!has(blank, "0.99999875"));
  const json narrow = explained_json("layer_norm 2 2 6 6 --dtype float32");
  CHECK(narrow["dtype"] == "float32");
  CHECK(narrow["rows"][0]["normalized"][3] == 0.9999988);
  CHECK(narrow["rows"][0]["deviation"] == 2.0000024);  // the float next to 2.0000025
}

TEST_CASE("explain attention --dtype float32: queries, keys and values are shown as float32 holds them") {
  const std::string code = explained(
      "attention 1 0 --queries 16777217,0 --keys 16777217,1 --values 16777217,2 --dtype float32 --python");
  for (const char* rows : {"query = torch.tensor([[16777216., 0.]]", "key = torch.tensor([[16777216., 1.]]",
                           "value = torch.tensor([[16777216., 2.]]"})
    CHECK(has(code, rows));
}

TEST_CASE("explain layer_norm --python: the book's lines, with the numbers to expect") {
  const std::string code = explained("layer_norm 2 2 6 6 --scale 1,1,2,1 --python");
  CHECK(has(code, "x = torch.tensor([[2., 2., 6., 6.]], dtype=torch.float64, requires_grad=True)\n"));
  CHECK(has(code, "scale = torch.tensor([1., 1., 2., 1.], dtype=torch.float64, requires_grad=True)\n"));
  CHECK(has(code, "shift = torch.zeros(4, dtype=torch.float64, requires_grad=True)\n"));
  CHECK(has(code, "norm_x = (x - mean) / torch.sqrt(var + 1e-05)"));
  CHECK(has(code, "# -0.99999875 -0.99999875  0.99999875  0.99999875\n"));
}

TEST_CASE("an operation's gradients by itself leave those of its inputs alone") {
  const Tensor x = expect::leaf({3, 5}, DType::float64);
  (x * 2).backward(Tensor::of({1, 1}, DType::float64).array());
  class Looker final : public GraphObserver {
   public:
    void differentiating(const Node& node, const Array& dy) override { given = input_gradients(node, dy); }
    std::vector<Array> given;
  } looker;
  const GraphObserverGuard guard(looker);
  (x * x).backward(Tensor::of({1, 10}, DType::float64).array());
  REQUIRE(looker.given.size() == 2);
  expect::exactly(looker.given[0], {6, 100});  // the sum of both uses of the input
  CHECK(!looker.given[1].defined());
  expect::exactly(x.grad(), {2 + 6, 2 + 100});
}
