#include "handgrad/view/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "handgrad/view/table.h"

namespace handgrad::view {
namespace {

/// What modules returned, and the lines of each centered norm's arithmetic.
std::vector<io::NamedArray> activations_of(const RecordedModules& modules) {
  std::vector<io::NamedArray> arrays;
  std::map<std::string, int> calls;
  const auto add = [&](std::string name, const Array& array) {
    const int call = ++calls[name];
    if (call > 1) name += fmt::format("#{}", call);
    arrays.push_back({std::move(name), array});
  };
  for (const RecordedCall& call : modules.calls()) {
    const std::string name = "act." + call.module->path();
    if (const auto norm = call.module->norm(); norm && norm->centered) {
      const LayerNormLines lines = layer_norm_lines(call.x, norm->eps);
      add(name + ".mean", lines.mean.to(call.x.dtype()));
      add(name + ".variance", lines.variance.to(call.x.dtype()));
      add(name + ".deviation", lines.deviation.to(call.x.dtype()));
      add(name + ".normalized", lines.normalized.to(call.x.dtype()));
    }
    add(name, call.y);
  }
  return arrays;
}

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

std::vector<io::NamedArray> trace(models::Model& model, const data::Batch& batch) {
  const nn::EvalMode eval_mode(model);
  model.zero_grad();
  const Shape shape({batch.rows, batch.cols});
  const Ids inputs(batch.inputs, shape), targets(batch.targets, shape);
  RecordedModules modules([](const nn::Module& module) { return !module.path().empty(); });
  Tensor logits;
  {
    const nn::ModuleObserverGuard guard(modules);
    logits = model(inputs);
  }
  const Tensor loss = cross_entropy(logits, targets);
  loss.backward();

  std::vector<io::NamedArray> arrays{{"loss", loss.array().reshape({1})}, {"logits", logits.array()}};
  for (const nn::NamedParameter& named : model.named_parameters()) {
    arrays.push_back({"param." + named.name, named.parameter->array()});
    if (named.parameter->has_grad()) arrays.push_back({"grad." + named.name, named.parameter->grad()});
  }
  for (io::NamedArray& named : activations_of(modules)) arrays.push_back(std::move(named));
  return arrays;
}

// ---- Comparing

TraceComparison compare_traces(const std::filesystem::path& a, const std::filesystem::path& b) {
  const io::SafetensorsReader first(a), second(b);
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
  Table table({{"tensor", Align::left},
               {"absolute", Align::right, 9},
               {"relative", Align::right, 9},
               {"worst at"},
               {"A", Align::right, 14},
               {"B", Align::right, 14},
               {"", Align::left}});
  std::size_t wrong = 0;
  for (const TraceDifference& d : comparison.differences) {
    const bool above = !(d.relative <= tolerance);
    wrong += above ? 1 : 0;
    table.add({d.name, fmt::format("{:.2e}", d.absolute), fmt::format("{:.2e}", d.relative),
               fmt::format("[{}]", d.worst), fmt::format("{:.8g}", d.a), fmt::format("{:.8g}", d.b),
               above ? "DIFFERS" : ""});
  }
  std::string out = table.text();
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

}  // namespace handgrad::view
