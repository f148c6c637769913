// The page of layer_norm: its lines in the order in which a person would write them, then the same list upside down.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "handgrad/train/explain/layer_norm.h"
#include "handgrad/train/explain/words.h"
#include "handgrad/train/text.h"

namespace handgrad::train::explain {
namespace {

constexpr auto kGiven = Source::given;

/// Writes the sections from the numbers.
class Writer {
 public:
  Writer(const LayerNormQuestion& q, const LayerNormAnswer& a, const LayerNormWording& wording)
      : q_(q),
        a_(a),
        wording_(wording),
        width_(q.rows.front().size()),
        two_sets_(q.eps > 0 && !wording.real) {}

  Sheet write() {
    Sheet sheet{title()};
    for (std::size_t row = 0; row < q_.rows.size(); ++row) sheet.sections.push_back(forward(row));
    for (std::size_t row = 0; row < q_.rows.size(); ++row) {
      sheet.sections.push_back(backward(row));
      sheet.sections.push_back(formula(row));
    }
    if (q_.rows.size() > 1) sheet.sections.push_back(sums());
    if (two_sets_) sheet.sections.push_back(with_eps());
    sheet.sections.push_back(step());
    return sheet;
  }

 private:
  const LayerNormPass& eps_pass(std::size_t row) const { return a_.with_eps[row]; }
  const LayerNormPass& hand_pass(std::size_t row) const { return a_.without_eps[row]; }

  /// Whether all numbers of a row are equal. Their computed mean may differ from them by rounding.
  bool constant(std::size_t row) const {
    const Row& x = q_.rows[row];
    return std::all_of(x.begin(), x.end(), [&](double v) { return v == x.front() && std::isfinite(v); });
  }
  /// Whether a row is walked back without eps, to follow by hand.
  bool by_hand(std::size_t row) const { return two_sets_ && !constant(row); }
  const LayerNormPass& walked(std::size_t row) const { return by_hand(row) ? hand_pass(row) : eps_pass(row); }

  std::string title() const {
    if (!wording_.title.empty()) return wording_.title;
    const std::string rows = q_.rows.size() == 1 ? "one row" : fmt::format("{} rows", q_.rows.size());
    return fmt::format("layer_norm of {} of {}{}, {}. Every number is read from the recorded graph.", rows,
                       plural(static_cast<std::int64_t>(width_), "feature", "features"),
                       q_.rows.size() == 1 ? "" : ", each by itself", name_of(q_.dtype));
  }

  std::string of_row(std::size_t row) const {
    return q_.rows.size() == 1 ? "" : fmt::format(", row {} of {}", row + 1, q_.rows.size());
  }

  std::string eps() const { return constant_text(q_.eps); }
  double count() const { return static_cast<double>(width_); }

  // ---- Forward

  Section forward(std::size_t row) const {
    const LayerNormPass& p = hand_pass(row);
    Section s{Part::forward, "FORWARD" + of_row(row), width_};
    s.lines.push_back({"1", "x", {}, q_.rows[row], kGiven});
    s.lines.push_back(
        {"2", "mean", quotient(Sentence().add_sum(q_.rows[row], p.sum, kGiven), p.sum, p.mean)});
    s.lines.push_back({"3", "centered", "x - mean", p.centered});
    s.lines.push_back({"4", "squared", "centered * centered", p.squared});
    Line variance{"5", "variance",
                  quotient(Sentence().add_sum(p.squared, p.sum_of_squared), p.sum_of_squared, p.variance)};
    variance.note = fmt::format("divided by {0}, not by {0} - 1", width_);
    s.lines.push_back(variance);
    if (two_sets_) {
      add_without_eps(s, row);
      s.lines.push_back({});
      s.lines.push_back(
          {"", "",
           "eps = " + eps() + " goes under the root: a row of equal numbers is then not divided by zero"});
    }
    add_normalized(s, row);
    if (two_sets_) {
      s.lines.push_back({});
      s.lines.push_back({"", "", "two trainable numbers for each feature, shared by all rows"});
    }
    add_output(s, row);
    return s;
  }

  /// "(2 + 2 + 6 + 6) / 4  =  16 / 4  =  4"
  Sentence quotient(Sentence sum, double total, double result) const {
    sum.add(" / ").add(count(), kGiven).add("  =  ");
    if (width_ <= 8) sum.add(total).add(" / ").add(count(), kGiven).add("  =  ");
    return sum.add(result);
  }

  void add_without_eps(Section& s, std::size_t row) const {
    const LayerNormPass& p = hand_pass(row);
    s.lines.push_back({"6", "deviation", Sentence("sqrt(").add(p.variance).add(")  =  ").add(p.deviation)});
    if (constant(row)) {
      s.lines.push_back({"7", "normalized", "0 / 0: not defined without eps"});
    } else {
      s.lines.push_back({"7", "normalized", "centered / deviation", p.normalized});
    }
  }

  void add_normalized(Section& s, std::size_t row) const {
    const LayerNormPass& p = eps_pass(row);
    Sentence root("sqrt(");
    root.add(p.variance);
    if (q_.eps > 0) root.add(" + " + eps());
    s.lines.push_back({"6", "deviation", root.add(")  =  ").add(p.deviation)});
    if (q_.eps == 0 && constant(row)) {
      s.lines.push_back({"7", "normalized", "0 / 0: not defined without eps", p.normalized});
    } else {
      s.lines.push_back({"7", "normalized", "centered / deviation", p.normalized});
    }
  }

  bool unchanged() const {
    return std::all_of(q_.scale.begin(), q_.scale.end(), [](double v) { return v == 1; }) &&
           std::all_of(q_.shift.begin(), q_.shift.end(), [](double v) { return v == 0; });
  }

  void add_output(Section& s, std::size_t row) const {
    const LayerNormPass& p = eps_pass(row);
    const auto all = [&](const Row& numbers, double value) {
      return !wording_.real &&
             std::all_of(numbers.begin(), numbers.end(), [&](double v) { return v == value; });
    };
    s.lines.push_back({"8", "scale", all(q_.scale, 1) ? "starts as ones" : "", q_.scale, kGiven});
    s.lines.push_back({"9", "shift", all(q_.shift, 0) ? "starts as zeros" : "", q_.shift, kGiven});
    s.lines.push_back({"10", "output", "scale * normalized + shift", p.output});
    s.lines.push_back({"", "check", wording_.real ? real_check(p) : forward_check(row)});
    if (wording_.model_difference >= 0)
      s.lines.push_back({"", "",
                         Sentence("the model's own output, of the form that trains, differs by at most ")
                             .add(wording_.model_difference, Source::computed, 2)});
  }

  /// What the norm does to a real row: moments of three of its lines.
  Sentence real_check(const LayerNormPass& p) const {
    const Moments n = moments(p.normalized, q_.dtype), y = moments(p.output, q_.dtype);
    Sentence check("mean, variance: x ");
    check.add(p.mean, Source::computed, 4).add(", ").add(p.variance, Source::computed, 4);
    check.add("; normalized ")
        .add(n.mean, Source::computed, 4)
        .add(", ")
        .add(n.variance, Source::computed, 6);
    return check.add("; output ")
        .add(y.mean, Source::computed, 4)
        .add(", ")
        .add(y.variance, Source::computed, 4);
  }

  Sentence forward_check(std::size_t row) const {
    const LayerNormPass& p = eps_pass(row);
    const Moments n = moments(p.normalized, q_.dtype);
    Sentence check(unchanged() ? "mean " : "normalized: mean ");
    check.add(n.mean).add(", variance ");
    if (q_.eps == 0) return check.add(n.variance);
    check.add(p.variance).add(" / ").add(p.under_root).add(" = ").add(n.variance);
    if (constant(row)) return check.add(": equal numbers have no variance to bring to 1");
    if (!std::isfinite(p.under_root))
      return check.add(": beyond what " + std::string(name_of(q_.dtype)) + " holds");
    return n.variance == 1 ? check : check.add(": eps is why it is not exactly 1");
  }

  // ---- Backward

  Section backward(std::size_t row) const {
    const LayerNormPass& p = walked(row);
    std::string how;
    if (by_hand(row)) how = ", eps left out to follow by hand";
    if (two_sets_ && constant(row)) how = ", with eps: without it there is 0 / 0";
    Section s{Part::backward, "BACKWARD" + of_row(row) + how, width_};
    add_loss(s, row);
    s.lines.push_back({});
    s.lines.push_back({"10", "d output", "upstream", p.d_output, kGiven});
    s.lines.push_back({"", "d shift", "d output", p.d_shift});
    s.lines.push_back({"", "d scale", "d output * normalized", p.d_scale});
    s.lines.push_back({"", "d normalized", "d output * scale", p.d_normalized});
    add_way_to_centered(s, p);
    add_way_to_x(s, p);
    add_rounding_note(s, p);
    return s;
  }

  /// What the loss is, and what the upstream gradient says.
  void add_loss(Section& s, std::size_t row) const {
    std::vector<std::string> lines = wording_.loss;
    if (!lines.empty()) {
      lines.emplace_back(
          "upstream = how fast it grows when a number of this output grows, as backward brought it here.");
    } else {
      const Row& up = q_.upstream[row];
      const std::size_t one = one_hot(up);
      if (row > 0) {
        lines = {"The loss adds up over the rows. Upstream gradient of this one: " + spaced(up) + "."};
      } else if (one < width_) {
        lines = {
            fmt::format(
                "d scale = how fast the loss grows when scale grows. The loss here is output [{}] itself,",
                one),
            fmt::format("so the upstream gradient is {}. Numbers on the left: the forward line walked back.",
                        spaced(up))};
      } else {
        lines = {
            "d scale = how fast the loss grows when scale grows. The loss here is sum(upstream * output),",
            fmt::format("so the upstream gradient is {}. Numbers on the left: the forward line walked back.",
                        spaced(up))};
      }
      if (q_.rows.size() > 1 && row == 0) lines.push_back("Of several rows the loss is the sum.");
    }
    for (const std::string& line : lines) s.lines.push_back({"", "", line});
  }

  void add_way_to_centered(Section& s, const LayerNormPass& p) const {
    const double deviation = p.deviation;
    s.lines.push_back({"7", "d centered", "d normalized / deviation", p.d_centered_direct});
    s.lines.push_back({"", "d deviation",
                       Sentence("-sum(d normalized * centered) / deviation^2  =  -")
                           .add_products(p.d_normalized, p.centered, p.d_deviation_sum)
                           .add(" / ")
                           .add(p.under_root)
                           .add("  =  ")
                           .add(p.d_deviation)});
    s.lines.push_back({"6", "d variance",
                       Sentence("d deviation / (2 * deviation)  =  ")
                           .add(p.d_deviation)
                           .add(" / ")
                           .add(2 * deviation)
                           .add("  =  ")
                           .add(p.d_variance)});
    s.lines.push_back({"5", "d squared", fmt::format("d variance / {}", width_), p.d_squared});
    s.lines.push_back({"4", "d centered", "+ d squared * 2 * centered", p.d_centered_by_squared});
    s.lines.push_back({"", " ", "  both together", p.d_centered});
  }

  void add_way_to_x(Section& s, const LayerNormPass& p) const {
    s.lines.push_back({"3", "d x", "d centered", p.d_x_direct});
    s.lines.push_back(
        {"", "d mean",
         Sentence("-sum(d centered)  =  -").add_sum(p.d_centered, -p.d_mean).add("  =  ").add(p.d_mean)});
    s.lines.push_back({"2", "d x", fmt::format("+ d mean / {}", width_), p.d_x_by_mean});
    s.lines.push_back({"", " ", "  both together", p.d_x});
    const Moments d = moments(p.d_x, q_.dtype);
    s.lines.push_back({"", "check",
                       Sentence("d x adds up to ")
                           .add(d.sum)
                           .add(d.sum == 0             ? ": adding 1 to every x changes no output"
                                : std::isfinite(d.sum) ? ": rounding"
                                                       : "")});
  }

  void add_rounding_note(Section& s, const LayerNormPass& p) const {
    if (!wording_.real && has_rounding({&p.d_scale, &p.d_centered, &p.d_x}, q_.dtype))
      s.lines.push_back({"", "", "A number like 1e-17 beside larger ones is what rounding leaves of 0."});
  }

  Section formula(std::size_t row) const {
    const LayerNormPass& p = walked(row);
    Section s{Part::backward, "THE SAME IN ONE FORMULA" + of_row(row), width_};
    s.lines.push_back(
        {"", "",
         "d x = (g - mean(g) - normalized * mean(g * normalized)) / deviation,   g = scale * d output"});
    s.lines.push_back({"", "g", {}, p.g});
    s.lines.push_back({"", fmt::format("{:<{}}", "- mean(g)", width_ > 8 ? 18 : 30),
                       Sentence("= -(").add(p.sum_g).add(" / ").add(count(), kGiven).add(")"),
                       p.minus_mean_g});
    s.lines.push_back({"", "- normalized * mean(g * normalized)", {}, p.minus_projection});
    s.lines.push_back({"", "sum of the three", {}, p.sum_of_terms});
    s.lines.push_back({"", "d x", "sum / deviation", p.d_x_by_formula});
    return s;
  }

  /// d scale and d shift of several rows, term by term: without eps where that works for all of them.
  Section sums() const {
    const bool hand = two_sets_ && std::none_of(a_.without_eps.begin(), a_.without_eps.end(),
                                                [](const LayerNormPass& p) { return p.variance == 0; });
    const auto& passes = hand ? a_.without_eps : a_.with_eps;
    Section s{Part::backward, "ALL ROWS share scale and shift: sums", width_};
    if (two_sets_ && !hand) s.title += " (with eps)";
    for (std::size_t row = 0; row < passes.size(); ++row)
      s.lines.push_back({"", "d scale", plus_row(row), passes[row].d_scale});
    s.lines.push_back({"", " ", "  all together", hand ? a_.d_scale_without_eps : a_.d_scale});
    for (std::size_t row = 0; row < passes.size(); ++row)
      s.lines.push_back({"", "d shift", plus_row(row), passes[row].d_shift});
    s.lines.push_back({"", " ", "  all together", hand ? a_.d_shift_without_eps : a_.d_shift});
    return s;
  }

  static std::string plus_row(std::size_t row) {
    return fmt::format("{}row {}", row == 0 ? "" : "+ ", row + 1);
  }

  Section with_eps() const {
    Section s{Part::backward, "WITH eps = " + eps() + (q_.eps == 1e-5 ? ", as in training" : ""), width_};
    s.lines.push_back({"", "d scale", {}, a_.d_scale});
    s.lines.push_back({"", "d shift", {}, a_.d_shift});
    for (std::size_t row = 0; row < q_.rows.size(); ++row)
      s.lines.push_back(
          {"", "d x", q_.rows.size() == 1 ? "" : fmt::format("row {}", row + 1), eps_pass(row).d_x});
    return s;
  }

  // ---- Step

  Section step() const {
    const std::string lr = constant_text(q_.lr);
    Section s{Part::step, "ONE SGD STEP, lr = " + lr + wording_.lr_note, width_};
    const auto moved = [&](const char* name, bool frozen) {
      return frozen ? std::string("frozen: no step moves it") : fmt::format("{0} - {1} * d {0}", name, lr);
    };
    s.lines.push_back({"", "scale", moved("scale", q_.scale_frozen), a_.new_scale});
    s.lines.push_back({"", "shift", moved("shift", q_.shift_frozen), a_.new_shift});
    s.lines[0].digits = s.lines[1].digits = 10;
    for (std::size_t row = 0; row < q_.rows.size(); ++row)
      s.lines.push_back({"", "output",
                         q_.rows.size() == 1 ? "same x, new scale and shift"
                                             : fmt::format("row {}, new scale and shift", row + 1),
                         a_.new_output[row]});
    s.lines.push_back({"", "check", step_check()});
    return s;
  }

  Sentence step_check() const {
    const std::size_t one = one_hot(q_.upstream[0]);
    const std::string loss =
        q_.rows.size() == 1 && one < width_ ? fmt::format("output [{}]", one) : "sum(upstream * output)";
    const char* way = a_.new_loss < a_.loss ? "fell" : a_.new_loss > a_.loss ? "rose" : "went";
    return Sentence("the loss, " + loss + ", " + way + " from ").add(a_.loss).add(" to ").add(a_.new_loss);
  }

  const LayerNormQuestion& q_;
  const LayerNormAnswer& a_;
  const LayerNormWording& wording_;
  std::size_t width_;
  bool two_sets_;
};

}  // namespace

Sheet sheet(const LayerNormQuestion& question, const LayerNormAnswer& answer,
            const LayerNormWording& wording) {
  return Writer(question, answer, wording).write();
}

}  // namespace handgrad::train::explain
