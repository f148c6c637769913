#include "handgrad/train/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "handgrad/nn/layer_norm.h"
#include "handgrad/train/explain/layer_norm_graph.h"

namespace handgrad::train {
namespace {

/// Collects what modules return, and the lines of each LayerNorm's arithmetic.
class Collector final : public nn::ModuleObserver {
 public:
  explicit Collector(std::vector<nn::NamedArray>& arrays) : arrays_(arrays) {}

  void input(const nn::Module& module, const Tensor& x) override {
    if (const auto* norm = dynamic_cast<const nn::LayerNorm*>(&module)) add_norm(*norm, x.array());
  }
  void output(const nn::Module& module, const Tensor& y) override {
    if (!module.path().empty()) add("act." + module.path(), y.array().copy());
  }

 private:
  void add(std::string name, Array array) {
    const int call = ++calls_[name];
    if (call > 1) name += fmt::format("#{}", call);
    arrays_.push_back({std::move(name), std::move(array)});
  }

  void add_norm(const nn::LayerNorm& norm, const Array& x) {
    const explain::LayerNormLines lines = explain::layer_norm_lines(x, norm.eps());
    const std::string name = "act." + norm.path();
    add(name + ".mean", lines.mean.to(x.dtype()));
    add(name + ".variance", lines.variance.to(x.dtype()));
    add(name + ".deviation", lines.deviation.to(x.dtype()));
    add(name + ".normalized", lines.normalized.to(x.dtype()));
  }

  std::vector<nn::NamedArray>& arrays_;
  std::map<std::string, int> calls_;
};

std::string group_of(const std::string& name) { return name.substr(0, name.find('.')); }

double largest_of(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double x : numbers)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  return largest;
}

/// Equal numbers do not differ, infinite ones neither; a NaN on one side only is an infinite difference.
double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

}  // namespace

std::vector<nn::NamedArray> trace(models::Model& model, const data::Batch& batch) {
  const nn::EvalMode eval_mode(model);
  model.zero_grad();
  const Shape shape({batch.rows, batch.cols});
  const Ids inputs(batch.inputs, shape), targets(batch.targets, shape);
  std::vector<nn::NamedArray> activations;
  Collector collector(activations);
  Tensor logits;
  {
    const nn::ModuleObserverGuard guard(collector);
    logits = model(inputs);
  }
  const Tensor loss = cross_entropy(logits, targets);
  loss.backward();

  std::vector<nn::NamedArray> arrays{{"loss", loss.array().reshape({1})}, {"logits", logits.array()}};
  for (const nn::NamedParameter& named : model.named_parameters()) {
    arrays.push_back({"param." + named.name, named.parameter->array()});
    if (named.parameter->has_grad()) arrays.push_back({"grad." + named.name, named.parameter->grad()});
  }
  arrays.insert(arrays.end(), activations.begin(), activations.end());
  return arrays;
}

// ---- Comparing

TraceComparison compare_traces(const std::filesystem::path& a, const std::filesystem::path& b) {
  const nn::SafetensorsReader first(a), second(b);
  std::map<std::string, double> largest;  // by group
  for (const auto& entry : first.entries()) {
    double& of_group = largest[group_of(entry.name)];
    of_group = std::max(of_group, largest_of(first.read(entry).values()));
  }
  TraceComparison result;
  for (const auto& entry : first.entries()) {
    const auto* other = second.find(entry.name);
    if (other == nullptr) {
      result.only_a.push_back(entry.name);
      continue;
    }
    if (!(other->shape == entry.shape)) {
      result.other_shape.push_back(
          fmt::format("{}: {} and {}", entry.name, entry.shape.text(), other->shape.text()));
      continue;
    }
    const std::vector<double> x = first.read(entry).values(), y = second.read(*other).values();
    TraceDifference d;
    d.name = entry.name;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double absolute = difference(x[i], y[i]);
      if (i > 0 && absolute <= d.absolute) continue;
      d.absolute = absolute;
      d.worst = static_cast<std::int64_t>(i);
      d.a = x[i];
      d.b = y[i];
    }
    const double scale = std::max(largest_of(x), 1e-3 * largest[group_of(entry.name)]);
    d.relative = d.absolute == 0 ? 0 : d.absolute / scale;
    result.worst = std::max(result.worst, d.relative);
    result.differences.push_back(std::move(d));
  }
  for (const auto& entry : second.entries())
    if (first.find(entry.name) == nullptr) result.only_b.push_back(entry.name);
  return result;
}

bool TraceComparison::equal(double tolerance) const {
  return only_a.empty() && only_b.empty() && other_shape.empty() && worst <= tolerance;
}

std::string text(const TraceComparison& comparison, double tolerance) {
  std::size_t width = 6, wrong = 0;
  for (const TraceDifference& d : comparison.differences) width = std::max(width, d.name.size());
  std::string out = fmt::format("{:<{}}  {:>9}  {:>9}  {:>8}  {:>14}  {:>14}\n", "tensor", width, "absolute",
                                "relative", "worst at", "A", "B");
  for (const TraceDifference& d : comparison.differences) {
    const bool above = !(d.relative <= tolerance);
    wrong += above ? 1 : 0;
    out +=
        fmt::format("{:<{}}  {:>9.2e}  {:>9.2e}  {:>8}  {:>14.8g}  {:>14.8g}{}\n", d.name, width, d.absolute,
                    d.relative, fmt::format("[{}]", d.worst), d.a, d.b, above ? "  DIFFERS" : "");
  }
  const auto list = [&](const char* title, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i)
      out += fmt::format("{:<12} {}\n", i == 0 ? title : "", names[i]);
  };
  out += "\n";
  list("only in A", comparison.only_a);
  list("only in B", comparison.only_b);
  list("other shape", comparison.other_shape);
  if (comparison.differences.empty()) return out + "nothing could be compared: no tensor of A is in B\n";
  return out + fmt::format("{} of {} tensors differ by more than {:g} (worst {:.2e})\n", wrong,
                           comparison.differences.size(), tolerance, comparison.worst);
}

}  // namespace handgrad::train
