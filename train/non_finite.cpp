#include "handgrad/train/non_finite.h"

#include <cmath>

namespace handgrad::train {
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
