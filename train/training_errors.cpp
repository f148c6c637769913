#include "handgrad/train/training_errors.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

namespace handgrad::train {
namespace {

std::string rule(const std::string& quantity, double value, std::int64_t step) {
  const char* text = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("the {} of step {} must be a finite number, got {}", quantity, step, text);
}

std::string rule(const nn::NamedParameter& unused, std::int64_t step) {
  return fmt::format("{} is trainable but got no gradient in step {}", unused.name, step);
}

}  // namespace

NonFiniteError::NonFiniteError(std::string quantity, double value, std::int64_t step, NonFinite first)
    : Error("train", rule(quantity, value, step)),
      quantity_(std::move(quantity)),
      value_(value),
      step_(step),
      first_(std::move(first)) {
  text_ = "train: " + message();
  if (first_.count > 0) {
    text_ += fmt::format("\n  first   {} {}, {}: {} of {} numbers {} not finite", first_.tensor,
                         first_.shape.text(), first_.what, first_.count, first_.of,
                         first_.count == 1 ? "is" : "are");
    if (!first_.module.empty()) text_ += "\n  in      " + first_.module;
  }
  text_ += "\n  Nothing was updated.";
}

void NonFiniteError::saved_in(const std::filesystem::path& checkpoint) {
  text_ += fmt::format(" The state before it is in {}.", checkpoint.generic_string());
}

UnusedParameterError::UnusedParameterError(const std::vector<nn::NamedParameter>& unused, std::int64_t step)
    : Error("train", rule(unused.front(), step)) {
  for (const nn::NamedParameter& named : unused) names_.push_back(named.name);
  const nn::NamedParameter& first = unused.front();
  const std::string label = fmt::format("{} {}", first.parameter->name(), first.parameter->shape().text());
  const std::string type = first.owner != nullptr ? fmt::format("of {}; ", first.owner->type()) : "";
  text_ = fmt::format("train: {}\n  {}  {}the loss does not depend on it", message(), label, type);
  const std::size_t width = label.size() + 2;
  const std::span others = std::span(names_).subspan(1);
  if (!others.empty()) text_ += fmt::format("\n  {:<{}}{}", "also", width, fmt::join(others, ", "));
  text_ +=
      fmt::format("\n  {:<{}}use it in forward(), or allow it: `set` train.allow_unused=true", "try", width);
  text_ += "\n  Nothing was updated and nothing was saved.";
}

}  // namespace handgrad::train
