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

namespace {

template <class Condition>
std::int64_t count_if(const Array& array, const Condition& condition) {
  return dispatch(array.dtype(), [&](auto zero) {
    const auto* numbers = array.data<decltype(zero)>();
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < array.numel(); ++i) count += condition(numbers[i]) ? 1 : 0;
    return count;
  });
}

std::int64_t count_nan(const Array& array) {
  return count_if(array, [](auto x) { return std::isnan(x); });
}

bool look(const nn::NamedParameter& named, const Array& array, const char* what, NonFinite& found) {
  const std::int64_t count = count_non_finite(array);
  const std::size_t dot = named.name.rfind('.');
  const std::string module = dot == std::string::npos ? "" : named.name.substr(0, dot);
  if (count > 0) found = {named.name, what, module, array.shape(), count, array.numel()};
  return count > 0;
}

}  // namespace

std::int64_t count_non_finite(const Array& array) {
  return count_if(array, [](auto x) { return !std::isfinite(x); });
}

NonFinite find_in_parameters(const optim::Parameters& parameters) {
  NonFinite found;
  for (const nn::NamedParameter& named : parameters) {
    if (look(named, named.parameter->array(), "a parameter", found)) break;
  }
  return found;
}

NonFinite find_in_gradients(const optim::Parameters& parameters) {
  NonFinite found;
  for (const nn::NamedParameter& named : parameters) {
    if (!named.parameter->frozen() && named.parameter->has_grad() &&
        look(named, named.parameter->grad(), "a gradient", found)) {
      break;
    }
  }
  return found;
}

void NonFiniteObserver::look(const Node& node, const Array& array, const char* what) {
  if (first_.count > 0 || array.dtype() == DType::int32) return;
  // A mask of -inf is meant: softmax turns it into zeros.
  const bool is_mask = std::string_view(node.op()) == "masked_fill";
  const std::int64_t count = is_mask ? count_nan(array) : count_non_finite(array);
  if (count > 0) first_ = {node.op(), what, node.scope().path, array.shape(), count, array.numel()};
}

}  // namespace handgrad::train
