#include "handgrad/nn/summary.h"

#include <algorithm>

#include <fmt/format.h>

namespace handgrad::nn {

std::string grouped(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string summary(const Module& module) {
  const auto parameters = module.named_parameters();
  std::int64_t total = 0, without_decay = 0;
  std::size_t name_width = 20, shape_width = 5;
  for (const NamedParameter& p : parameters) {
    total += p.parameter->numel();
    if (!p.parameter->decay()) without_decay += p.parameter->numel();
    name_width = std::max(name_width, p.name.size());
    shape_width = std::max(shape_width, p.parameter->shape().text().size());
  }
  const std::size_t count_width = std::max<std::size_t>(grouped(total).size(), 5);
  const auto line = [&](const std::string& name, const std::string& shape, const std::string& count,
                        const std::string& rest) {
    return fmt::format("{:<{}}  {:>{}}  {:>{}}  {}\n", name, name_width, shape, shape_width, count,
                       count_width, rest);
  };

  std::string text = line("parameter", "shape", "count", "decay   in");
  for (const NamedParameter& p : parameters) {
    const char* const decay = p.parameter->frozen() ? "frozen" : p.parameter->decay() ? "yes" : "no";
    text += line(p.name, p.parameter->shape().text(), grouped(p.parameter->numel()),
                 fmt::format("{:<6}  {}", decay, p.owner->type()));
  }
  return text + line(fmt::format("{} parameters", parameters.size()), "", grouped(total),
                     fmt::format("of them {} without decay", grouped(without_decay)));
}

}  // namespace handgrad::nn
