// The sheet of layer_norm: its lines in the order in which a person would write them, then the same list backward.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "handgrad/core/ops.h"
#include "handgrad/view/explain/layer_norm_passes.h"
#include "handgrad/view/explain/page.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

constexpr auto kGiven = Origin::given;

/// A sum that a person writes down and the graph does not contain.
double total(const Tensor& numbers) {
  const NoGrad no_grad;
  return sum(numbers.detach()).item();
}
double total(const Array& numbers) { return total(Tensor::constant(numbers)); }

/// The largest difference of two rows of one width.
double largest_difference(const Numbers& a, const Numbers& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class LayerNormSheet {
 public:
  LayerNormSheet(const Request& request, const ModelNorm* model)
      : request_(request),
        model_(model),
        o_(request),
        with_eps_(request, o_, o_.eps),
        without_eps_(request, o_, 0),
        two_sets_(o_.eps > 0 && model == nullptr),
        page_(request,
              fmt::format("layer_norm of {} of {}{}", number_of_rows(rows()),
                          plural(o_.width, "feature", "features"), rows() == 1 ? "" : ", each by itself")) {}

  Page write() {
    if (model_ != nullptr) page_.sheet().title = model_->title;
    for (std::size_t row = 0; row < rows(); ++row) forward(row);
    for (std::size_t row = 0; row < rows(); ++row) {
      backward(row);
      formula(row);
    }
    if (rows() > 1) sums();
    if (two_sets_) gradients_with_eps();
    page_.python() = layer_norm_python(request_, o_, with_eps_);
    step();
    return std::move(page_);
  }

 private:
  std::size_t rows() const { return request_.rows.size(); }
  std::string of(std::size_t row) const { return of_rows(row, rows()); }
  std::string eps() const { return constant_text(o_.eps); }
  double count() const { return static_cast<double>(o_.width); }

  /// Whether all numbers of a row are equal. Their computed mean may differ from them by rounding.
  bool constant(std::size_t row) const {
    const Numbers& x = request_.rows[row];
    return std::all_of(x.begin(), x.end(), [&](double v) { return v == x.front() && std::isfinite(v); });
  }
  /// Whether the backward of a row is shown without eps, to follow by hand.
  bool by_hand(std::size_t row) const { return two_sets_ && !constant(row); }
  const LayerNormPass& shown(std::size_t row) const {
    return by_hand(row) ? without_eps_.each[row] : with_eps_.each[row];
  }

  // ---- Forward

  void forward(std::size_t row) {
    const LayerNormPass& p = with_eps_.each[row];
    const double sum = total(p.x), sum_of_squared = total(p.g.squared.y);
    page_.section(Part::forward, "FORWARD" + of(row), o_.width);
    page_.row("1", "x", {}, "", request_.rows[row], kGiven);
    page_.say("2", "mean", quotient({request_.rows[row], sum, kGiven}, p.g.mean.y.item()));
    page_.row("3", "centered", "x - mean", "", p.g.centered.y);
    page_.row("4", "squared", "centered * centered", "", p.g.squared.y);
    page_.say("5", "variance", quotient({p.g.squared.y.values(), sum_of_squared}, p.g.variance.y.item()))
        .note = fmt::format("divided by {0}, not by {0} - 1", o_.width);
    if (two_sets_) {
      normalized(without_eps_.each[row], row, 0);
      page_.gap();
      page_.say("eps = " + eps() +
                " goes under the root: a row of equal numbers is then not divided by zero");
    }
    normalized(p, row, o_.eps);
    if (two_sets_) {
      page_.gap();
      page_.say("two trainable numbers for each feature, shared by all rows");
    }
    output(row);
  }

  /// "(2 + 2 + 6 + 6) / 4  =  16 / 4  =  4"
  Sentence quotient(const Sum& sum, double result) const {
    Sentence s(sum, " / ", given(count()), "  =  ");
    if (o_.width <= 8) s.add(sum.sum, " / ", given(count()), "  =  ");
    return s.add(result);
  }

  void normalized(const LayerNormPass& p, std::size_t row, double eps) {
    Sentence root("sqrt(");
    root.add(p.g.variance.y.item());
    if (eps > 0) root.add(" + " + constant_text(eps));
    page_.say("6", "deviation", root.add(")  =  ", p.g.deviation.y.item()));
    const bool undefined = eps == 0 && constant(row);
    const char* formula = undefined ? "0 / 0: not defined without eps" : "centered / deviation";
    if (undefined && two_sets_) {
      page_.say("7", "normalized", formula);
    } else {
      page_.row("7", "normalized", formula, "", p.g.normalized.y);
    }
  }

  void output(std::size_t row) {
    const LayerNormPass& p = with_eps_.each[row];
    const bool ones = all_are(o_.scale, 1), zeros = all_are(o_.shift, 0);
    page_.row("8", "scale", ones && model_ == nullptr ? "starts as ones" : "", "", o_.scale, kGiven);
    page_.row("9", "shift", zeros && model_ == nullptr ? "starts as zeros" : "", "", o_.shift, kGiven);
    page_.row("10", "output", "scale * normalized + shift", "", p.g.output.y);
    page_.say("", "check", model_ != nullptr ? model_check(p) : forward_check(row, ones && zeros));
    if (model_ != nullptr)
      page_.say(Sentence("the model's own output, computed by the fused operation, differs by at most ",
                         digits(largest_difference(model_->output, p.g.output.y.values()), 2)));
  }

  /// The moments of three lines show what the norm does to a row of a model.
  Sentence model_check(const LayerNormPass& p) const {
    const Moments n = moments(p.g.normalized.y.values(), request_.dtype),
                  y = moments(p.g.output.y.values(), request_.dtype);
    Sentence check("mean, variance: x ");
    check.add(digits(p.g.mean.y.item(), 4), ", ", digits(p.g.variance.y.item(), 4));
    check.add("; normalized ", digits(n.mean, 4), ", ", digits(n.variance, 6));
    return check.add("; output ", digits(y.mean, 4), ", ", digits(y.variance, 4));
  }

  Sentence forward_check(std::size_t row, bool unchanged) const {
    const LayerNormGraph& g = with_eps_.each[row].g;
    const Moments n = moments(g.normalized.y.values(), request_.dtype);
    Sentence check(unchanged ? "mean " : "normalized: mean ");
    check.add(n.mean, ", variance ");
    if (o_.eps == 0) return check.add(n.variance);
    const double under_root = g.under_root.y.item();
    check.add(g.variance.y.item(), " / ", under_root, " = ", n.variance);
    if (constant(row)) return check.add(": equal numbers have no variance to bring to 1");
    if (!std::isfinite(under_root))
      return check.add(": beyond what " + std::string(name_of(request_.dtype)) + " holds");
    return n.variance == 1 ? check : check.add(": eps is why it is not exactly 1");
  }

  // ---- Backward

  void backward(std::size_t row) {
    const LayerNormPass& p = shown(row);
    std::string how;
    if (by_hand(row)) how = ", eps left out to follow by hand";
    if (two_sets_ && constant(row)) how = ", with eps: without it there is 0 / 0";
    page_.section(Part::backward, "BACKWARD" + of(row) + how, o_.width);
    loss(row);
    page_.gap();
    page_.row("10", "d output", "upstream", "", p.g.output.dy, kGiven);
    page_.row("", "d shift", "d output", "", p.g.output.d_input[1]);
    page_.row("", "d scale", "d output * normalized", "", p.g.scaled.d_input[0]);
    page_.row("", "d normalized", "d output * scale", "", p.g.scaled.d_input[1]);
    back_to_centered(p.g);
    back_to_x(p);
    if (model_ == nullptr && has_rounding({p.g.scaled.d_input[0], p.g.centered.dy, p.x.grad()}))
      page_.say("A number like 1e-17 beside larger ones is what rounding leaves of 0.");
  }

  /// What the loss is, and what the upstream gradient means.
  void loss(std::size_t row) {
    if (model_ != nullptr) {
      for (const std::string& line : model_->loss) page_.say(line);
      page_.say("upstream = how fast it grows when a number of this output grows, as backward computed it.");
      return;
    }
    const std::string upstream = spaced(o_.upstream[row]);
    if (row > 0) {
      page_.say("The loss adds up over the rows. Upstream gradient of this one: " + upstream + ".");
      return;
    }
    const std::size_t one = one_hot(o_.upstream[row]);
    page_.say(
        fmt::format("d scale = how fast the loss grows when scale grows. The loss here is {},",
                    one < o_.width ? fmt::format("output [{}] itself", one) : "sum(upstream * output)"));
    page_.say(fmt::format(
        "so the upstream gradient is {}. Numbers on the left: the forward line walked back.", upstream));
    if (rows() > 1) page_.say("Of several rows the loss is the sum.");
  }

  void back_to_centered(const LayerNormGraph& g) {
    const Array& d_normalized = g.scaled.d_input[1];
    const double deviation = g.deviation.y.item(), d_deviation = g.deviation.dy.item();
    page_.row("7", "d centered", "d normalized / deviation", "", g.normalized.d_input[0]);
    page_.say("", "d deviation",
              Sentence("-sum(d normalized * centered) / deviation^2  =  -",
                       Products{d_normalized.values(), g.centered.y.values(),
                                total(Tensor::constant(d_normalized) * Tensor::constant(g.centered.y))},
                       " / ", g.under_root.y.item(), "  =  ", d_deviation));
    page_.say("6", "d variance",
              Sentence("d deviation / (2 * deviation)  =  ", d_deviation, " / ", 2 * deviation, "  =  ",
                       g.variance.dy.item()));
    page_.row("5", "d squared", fmt::format("d variance / {}", o_.width), "", g.variance.d_input[0]);
    page_.row("4", "d centered", "+ d squared * 2 * centered", "", g.squared.d_input[0]);
    page_.row("", " ", "  both together", "", g.centered.dy);
  }

  void back_to_x(const LayerNormPass& p) {
    const double d_mean = p.g.mean.dy.item();
    page_.row("3", "d x", "d centered", "", p.g.centered.d_input[0]);
    page_.say("", "d mean",
              Sentence("-sum(d centered)  =  -", Sum{p.g.centered.dy.values(), -d_mean}, "  =  ", d_mean));
    page_.row("2", "d x", fmt::format("+ d mean / {}", o_.width), "", p.g.mean.d_input[0]);
    page_.row("", " ", "  both together", "", p.x.grad());
    const Moments d = moments(p.x.grad().values(), request_.dtype);
    page_.say("", "check",
              Sentence("d x adds up to ", d.sum,
                       d.sum == 0             ? ": adding 1 to every x changes no output"
                       : std::isfinite(d.sum) ? ": rounding"
                                              : ""));
  }

  void formula(std::size_t row) {
    const LayerNormPass& p = shown(row);
    page_.section(Part::backward, "THE SAME IN ONE FORMULA" + of(row), o_.width);
    page_.say("d x = (g - mean(g) - normalized * mean(g * normalized)) / deviation,   g = scale * d output");
    page_.row("", "g", {}, "", p.gradient);
    page_.row("", fmt::format("{:<{}}", "- mean(g)", o_.width > 8 ? 18 : 30),
              Sentence("= -(", total(p.gradient), " / ", given(count()), ")"), "", p.minus_mean);
    page_.row("", "- normalized * mean(g * normalized)", {}, "", p.minus_projection);
    page_.row("", "sum of the three", {}, "", p.sum_of_terms);
    page_.row("", "d x", "sum / deviation", "", p.dx_by_formula);
  }

  /// d scale and d shift of several rows, term by term: without eps where that works for all of them.
  void sums() {
    const bool hand =
        two_sets_ && std::none_of(without_eps_.each.begin(), without_eps_.each.end(),
                                  [](const LayerNormPass& p) { return p.g.variance.y.item() == 0; });
    const LayerNormPasses& passes = hand ? without_eps_ : with_eps_;
    page_.section(
        Part::backward,
        std::string("ALL ROWS share scale and shift: sums") + (two_sets_ && !hand ? " (with eps)" : ""),
        o_.width);
    const auto add = [&](const char* label, const auto& of_row, const Array& all) {
      for (std::size_t row = 0; row < rows(); ++row)
        page_.row("", label, fmt::format("{}row {}", row == 0 ? "" : "+ ", row + 1), "",
                  of_row(passes.each[row].g));
      page_.row("", " ", "  all together", "", all);
    };
    add(
        "d scale", [](const LayerNormGraph& g) { return g.scaled.d_input[0]; }, passes.d_scale);
    add(
        "d shift", [](const LayerNormGraph& g) { return g.output.d_input[1]; }, passes.d_shift);
  }

  void gradients_with_eps() {
    page_.section(Part::backward, "WITH eps = " + eps() + (o_.eps == 1e-5 ? ", as in training" : ""),
                  o_.width);
    page_.row("", "d scale", {}, "", with_eps_.d_scale);
    page_.row("", "d shift", {}, "", with_eps_.d_shift);
    for (std::size_t row = 0; row < rows(); ++row)
      page_.row("", "d x", rows() == 1 ? "" : fmt::format("row {}", row + 1), "",
                with_eps_.each[row].x.grad());
  }

  // ---- Step

  void step() {
    const bool scale_frozen = model_ != nullptr && model_->scale_frozen,
               shift_frozen = model_ != nullptr && model_->shift_frozen;
    const LayerNormStep s = layer_norm_step(request_, o_, with_eps_, scale_frozen, shift_frozen);
    const std::string lr = constant_text(o_.lr);
    page_.section(Part::step, "ONE SGD STEP, lr = " + lr + (model_ != nullptr ? ", with this row alone" : ""),
                  o_.width);
    for (const Parameter* p : {&with_eps_.scale, &with_eps_.shift})
      page_
          .row("", p->name(),
               p->frozen() ? "frozen: no step moves it" : fmt::format("{0} - {1} * d {0}", p->name(), lr), "",
               p->array())
          .digits = 10;
    for (std::size_t row = 0; row < rows(); ++row)
      page_.row(
          "", "output",
          rows() == 1 ? "same x, new scale and shift" : fmt::format("row {}, new scale and shift", row + 1),
          "", row_of(s.output, row));
    const std::size_t one = one_hot(o_.upstream[0]);
    const std::string loss =
        rows() == 1 && one < o_.width ? fmt::format("output [{}]", one) : "sum(upstream * output)";
    const char* change = s.loss_after < s.loss_before   ? "fell"
                         : s.loss_after > s.loss_before ? "rose"
                                                        : "went";
    page_.say("", "check",
              Sentence("the loss, " + loss + ", " + change + " from ", s.loss_before, " to ", s.loss_after));
    page_.json().update(layer_norm_json(request_, o_, with_eps_, without_eps_, s));
  }

  const Request& request_;
  const ModelNorm* model_;
  LayerNormOperands o_;
  LayerNormPasses with_eps_, without_eps_;
  bool two_sets_;
  Page page_;
};

}  // namespace

Page layer_norm_page(const Request& request, const ModelNorm* model) {
  return LayerNormSheet(request, model).write();
}

Explanation explain_layer_norm(const Request& request) {
  const std::string& command = request.command;
  const std::string explain = command.substr(0, command.find(" layer_norm") + 11);
  Page page = layer_norm_page(request, nullptr);
  if (command != explain + " 2 2 6 6") return page.finish(operation_next(request));
  return page.finish({suggestion(Next::exact, {explain}), suggestion(Next::upstream, {explain})});
}

}  // namespace handgrad::view::explain
