#include "handgrad/core/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <ostream>

#include "handgrad/core/autograd.h"
#include "handgrad/core/error.h"
#include "handgrad/core/random.h"

namespace handgrad {
namespace {

using Function = std::function<Tensor()>;

/// A leaf under examination.
struct Leaf {
  std::string name;
  Tensor tensor;
};

void require_double(const char* op, const std::string& name, const Tensor& tensor) {
  if (tensor.dtype() == DType::float64) return;
  throw DTypeError(
      op, name + " must be float64, got " + name_of(tensor.dtype()), {{name, tensor.shape()}},
      "float64 for all numbers: in float32 the differences are wrong from the third digit on, even where "
      "the gradient is right");
}

/// Evaluates f again with the same random numbers.
Tensor evaluate(const Function& f) {
  set_random_context(RandomContext(random_context()));
  return f();
}

Array evaluate_without_history(const Function& f) {
  const NoGrad guard;
  return evaluate(f).array().copy();  // it may share the numbers that are about to change
}

Array upstream_for(const Tensor& y, std::uint64_t seed) {
  Random random(seed, 0x677261646368ULL);
  Array dy(y.shape(), y.dtype());
  double* numbers = dy.mutable_data<double>();
  for (std::int64_t i = 0; i < dy.numel(); ++i)
    numbers[i] = random.uniform(0.5, 1.5) * (random.below(2) == 0 ? 1 : -1);
  return dy;
}

void require_same_twice(const char* op, const Array& first, const Function& f) {
  const Array second = evaluate_without_history(f);
  for (std::int64_t i = 0; i < first.numel(); ++i) {
    const double a = first.value(i), b = second.value(i);
    if (a != b && !(std::isnan(a) && std::isnan(b)))
      throw ValueError(op,
                       "the function must give the same result each time, got two that differ at position " +
                           std::to_string(i),
                       {{"result", first.shape()}});
  }
}

/// One element of a leaf, changed and restored at the end, also when an evaluation throws.
class MovedElement {
 public:
  MovedElement(Tensor& leaf, std::int64_t element)
      : leaf_(leaf), element_(element), start_(leaf.array().value(element)) {}
  ~MovedElement() { set(start_); }
  MovedElement(const MovedElement&) = delete;
  MovedElement& operator=(const MovedElement&) = delete;

  double start() const { return start_; }
  void set(double value) { leaf_.mutable_array().mutable_data<double>()[element_] = value; }

 private:
  Tensor& leaf_;
  std::int64_t element_;
  double start_;
};

/// d sum(f * dy) / d element, by four points. Results are subtracted element by element before they are summed, so
/// that what does not change cancels exactly.
double central_difference(const Function& f, const Array& dy, Tensor& leaf, std::int64_t element,
                          double step) {
  MovedElement x(leaf, element);
  const double h = step * std::max(1.0, std::abs(x.start()));
  const auto at = [&](double steps) {
    x.set(x.start() + steps * h);
    return evaluate_without_history(f);
  };
  const Array near_above = at(1), near_below = at(-1), far_above = at(2), far_below = at(-2);
  const double *g = dy.data<double>(), *na = near_above.data<double>(), *nb = near_below.data<double>(),
               *fa = far_above.data<double>(), *fb = far_below.data<double>();
  double sum = 0;
  for (std::int64_t i = 0; i < dy.numel(); ++i) sum += g[i] * (8 * (na[i] - nb[i]) - (fa[i] - fb[i]));
  return sum / (12 * h);
}

struct Measured {
  std::int64_t element;
  double gradient, difference;
};

std::vector<Measured> measure(const Function& f, const Array& dy, Leaf& leaf,
                              const GradCheckOptions& options) {
  const std::int64_t numel = leaf.tensor.numel();
  const std::int64_t count = options.elements > 0 ? std::min(options.elements, numel) : numel;
  std::vector<Measured> all;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t i = k * numel / count;
    const double gradient = leaf.tensor.has_grad() ? leaf.tensor.grad().value(i) : 0;
    all.push_back({i, gradient, central_difference(f, dy, leaf.tensor, i, options.step)});
  }
  return all;
}

double largest_of(const std::vector<Measured>& all) {
  double largest = 0;
  for (const Measured& m : all) largest = std::max({largest, std::abs(m.gradient), std::abs(m.difference)});
  return largest;
}

GradCheckEntry judge(const Leaf& leaf, const std::vector<Measured>& all, double largest_of_all,
                     double tolerance) {
  GradCheckEntry entry;
  entry.name = leaf.name;
  entry.shape = leaf.tensor.shape();
  entry.checked = static_cast<std::int64_t>(all.size());
  entry.has_gradient = leaf.tensor.has_grad();
  entry.largest = largest_of(all);
  const double scale = std::max(entry.largest, 1e-3 * largest_of_all);
  for (const Measured& m : all) {
    double error = std::abs(m.gradient - m.difference);
    if (error > 0) error /= scale;
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (error <= entry.error && &m != &all.front()) continue;
    entry.error = error;
    entry.worst = m.element;
    entry.gradient = m.gradient;
    entry.difference = m.difference;
  }
  entry.ok = entry.error <= tolerance;
  return entry;
}

GradCheckReport check(const char* op, const Function& f, std::vector<Leaf>& leaves,
                      const GradCheckOptions& options) {
  for (Leaf& leaf : leaves) leaf.tensor.zero_grad();
  const Tensor y = evaluate(f);
  require_double(op, "result", y);
  require_same_twice(op, y.array(), f);
  const Array dy = upstream_for(y, options.seed);
  y.backward(dy);

  std::vector<std::vector<Measured>> measured;
  double largest = 0;
  for (Leaf& leaf : leaves) {
    measured.push_back(measure(f, dy, leaf, options));
    largest = std::max(largest, largest_of(measured.back()));
  }
  GradCheckReport report;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    report.tensors.push_back(judge(leaves[i], measured[i], largest, options.tolerance));
    report.ok = report.ok && report.tensors.back().ok;
    report.error = std::max(report.error, report.tensors.back().error);
  }
  for (Leaf& leaf : leaves) leaf.tensor.zero_grad();
  return report;
}

/// "[1, 3]" for a flat position.
std::string index_text(const Shape& shape, std::int64_t position) {
  Shape index = shape;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    index[i] = position % shape[i];
    position /= shape[i];
  }
  return index.text();
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width) + 2, ' ');
  return text;
}

std::string number(const char* format, double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

}  // namespace

std::string GradCheckReport::text() const {
  constexpr std::size_t kNumber = 15;  // of nine digits, with sign and exponent
  const auto worst = [](const GradCheckEntry& t) {
    return t.checked > 0 ? index_text(t.shape, t.worst) : std::string("-");
  };
  std::size_t name_width = 6, shape_width = 5, worst_width = 8;
  for (const GradCheckEntry& t : tensors) {
    name_width = std::max(name_width, t.name.size());
    shape_width = std::max(shape_width, t.shape.text().size());
    worst_width = std::max(worst_width, worst(t).size());
  }
  std::string out = padded("tensor", name_width) + padded("shape", shape_width) +
                    padded("worst at", worst_width) + padded("gradient", kNumber) +
                    padded("difference", kNumber) + "error\n";
  for (const GradCheckEntry& t : tensors) {
    out += padded(t.name, name_width) + padded(t.shape.text(), shape_width) + padded(worst(t), worst_width);
    out += padded(t.has_gradient ? number("%.9g", t.gradient) : "none", kNumber);
    out +=
        padded(number("%.9g", t.difference), kNumber) + number("%.2e", t.error) + (t.ok ? "\n" : "  WRONG\n");
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const GradCheckReport& report) { return out << report.text(); }

GradCheckReport check_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                const std::vector<Tensor>& inputs, const GradCheckOptions& options) {
  std::vector<Tensor> copies;
  std::vector<Leaf> leaves;
  for (const Tensor& input : inputs) {
    const std::string name = "input " + std::to_string(leaves.size());
    require_double("check_gradients", name, input);
    copies.push_back(Tensor::constant(input.array().copy()).requires_grad());
    leaves.push_back({name, copies.back()});
  }
  return check(
      "check_gradients", [&] { return f(copies); }, leaves, options);
}

GradCheckReport check_parameters(const std::function<Tensor()>& f,
                                 const std::vector<CheckedParameter>& parameters,
                                 const GradCheckOptions& options) {
  std::vector<Leaf> leaves;
  for (const CheckedParameter& each : parameters) {
    if (each.parameter->frozen()) continue;
    require_double("check_parameters", each.name, *each.parameter);
    leaves.push_back({each.name, *each.parameter});
  }
  return check("check_parameters", f, leaves, options);
}

}  // namespace handgrad
