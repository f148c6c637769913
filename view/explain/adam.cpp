// The page of adam: one parameter, one gradient for each step, the optimizer that trains.
#include <fmt/format.h>

#include <cmath>

#include "handgrad/core/ops.h"
#include "handgrad/core/parameter.h"
#include "handgrad/optim/adam.h"
#include "handgrad/view/explain/page.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

struct Settings {
  optim::AdamOptions options;
  double start = 1;
};

Settings settings_of(const Request& request) {
  Settings s;
  s.start = number_option(request, "start", 1, -INFINITY);
  s.options.lr = number_option(request, "lr", 1e-3, 0);
  s.options.eps = number_option(request, "eps", 1e-8, 0);
  s.options.weight_decay = number_option(request, "weight-decay", 0, 0);
  if (const auto betas = request.options.find("betas"); betas != request.options.end()) {
    if (betas->second.size() != 1 || betas->second.front().size() != 2)
      throw_error(request, fmt::format("`betas` needs two numbers, got {}", typed(betas->second)), {},
                  "`betas` 0.9,0.999");
    for (const double beta : betas->second.front())
      if (!(beta >= 0 && beta < 1))
        throw_error(request,
                    fmt::format("`betas` must be at least 0 and below 1, got {}", constant_text(beta)), {},
                    "`betas` 0.9,0.999");
    s.options.betas = {betas->second.front()[0], betas->second.front()[1]};
  }
  return s;
}

/// The parameter and its optimizer state.
struct State {
  double value, m, v;
};

State state_of(const Parameter& parameter, const optim::Adam& adam) {
  State state{parameter.array().value(0), 0, 0};
  for (const io::NamedArray& named : adam.state()) {
    if (named.name == "value.exp_avg") state.m = named.array.value(0);
    if (named.name == "value.exp_avg_sq") state.v = named.array.value(0);
  }
  return state;
}

/// "0.9 * 0.05 + 0.1 * 0.25  =  0.07", the second number squared for v.
Sentence mean_line(double beta, double before, double gradient, const char* power, double after) {
  const std::string rest =
      constant_text(std::round((1 - beta) * 1e12) / 1e12);  // 0.1, and not 0.09999999999999998
  Sentence s(constant_text(beta) + " * ");
  s.add(before, " + " + rest + " * ");
  if (gradient < 0 && *power != 0) {
    s.add("(", given(gradient), ")");
  } else {
    s.add(given(gradient));
  }
  return s.add(power, "  =  ", after);
}

void write_step(Page& page, const Settings& s, std::size_t t, double gradient, const State& before,
                const State& after) {
  const auto [beta1, beta2] = s.options.betas;
  const auto count = static_cast<double>(t);
  const double keep1 = 1 - std::pow(beta1, count), keep2 = 1 - std::pow(beta2, count);
  const double m = after.m / keep1, v = after.v / keep2;
  page.section(Part::step, fmt::format("STEP {}", t), 0);
  page.in_row(t - 1);
  page.scalar("1", "gradient", Sentence("g  =  ", given(gradient)), "gradient", gradient);
  page.scalar("2", "m", mean_line(beta1, before.m, gradient, "", after.m), "m", after.m);
  page.scalar("3", "v", mean_line(beta2, before.v, gradient, "^2", after.v), "v", after.v);
  page.scalar(
      "4", "m corrected",
      Sentence("m / (1 - ", given(beta1), fmt::format("^{})  =  ", t), after.m, " / ", keep1, "  =  ", m),
      "m_corrected", m);
  page.scalar(
      "5", "v corrected",
      Sentence("v / (1 - ", given(beta2), fmt::format("^{})  =  ", t), after.v, " / ", keep2, "  =  ", v),
      "v_corrected", v);
  page.scalar("6", "root", Sentence("sqrt(", v, ")  =  ", std::sqrt(v)), "root", std::sqrt(v));
  Sentence update(fmt::format("-{} * ", constant_text(s.options.lr)));
  update.add(m, " / (", std::sqrt(v), " + " + constant_text(s.options.eps) + ")");
  if (s.options.weight_decay > 0)
    update.add(
        fmt::format(" - {} * {} * ", constant_text(s.options.lr), constant_text(s.options.weight_decay)),
        before.value);
  page.scalar("7", "update", update.add("  =  ", after.value - before.value), "update",
              after.value - before.value);
  page.scalar("8", "value",
              Sentence(before.value, Either{after.value < before.value ? " - " : " + ", " + "},
                       digits(std::abs(after.value - before.value), 10), "  =  ", digits(after.value, 10)),
              "value", after.value);
}

std::string python(const Request& request, const Settings& s, const Numbers& gradients, double value) {
  const std::string type = fmt::format("dtype=torch.{}", name_of(request.dtype));
  return "import torch\n" +
         fmt::format("value = torch.tensor({}, {}, requires_grad=True)\n", python_number(s.start), type) +
         fmt::format("adam = torch.optim.{}([value], lr={}, betas=({}, {}), eps={}, weight_decay={})\n",
                     s.options.weight_decay > 0 ? "AdamW" : "Adam", s.options.lr, s.options.betas[0],
                     s.options.betas[1], s.options.eps, s.options.weight_decay) +
         fmt::format("for g in {}:\n", python_list(gradients)) +
         fmt::format("    value.grad = torch.tensor(g, {})\n    adam.step()\n", type) +
         python_line("print(value.item())", number_text(value, 10));
}

}  // namespace

Explanation explain_adam(const Request& request) {
  const Settings s = settings_of(request);
  Numbers gradients;
  for (const Numbers& row : request.rows) gradients.insert(gradients.end(), row.begin(), row.end());
  Page page(request,
            fmt::format("adam: one parameter that starts as {}, {}", number_text(s.start),
                        plural(gradients.size(), "step", "steps")),
            "m, v and value are the optimizer's own; the lines between follow from them.");
  page.given("start", s.start);
  page.given("lr", s.options.lr);
  page.given("betas", Numbers(s.options.betas.begin(), s.options.betas.end()));
  page.given("eps", s.options.eps);
  page.given("weight_decay", s.options.weight_decay);
  // A matrix of one number: weight decay leaves vectors alone.
  Parameter parameter("value", Tensor::full({1, 1}, s.start, request.dtype));
  optim::Adam adam({{"value", &parameter, nullptr}}, s.options, optim::Decay::decoupled);
  State before{s.start, 0, 0};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    parameter.zero_grad();
    (parameter * gradients[i]).backward();  // a loss whose gradient is the given number
    adam.step(s.options.lr);
    const State after = state_of(parameter, adam);
    write_step(page, s, i + 1, gradients[i], before, after);
    before = after;
  }
  page.python() = python(request, s, gradients, before.value);
  return page.finish(operation_next(request));
}

}  // namespace handgrad::view::explain
