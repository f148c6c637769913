#include "handgrad/train/find_non_finite.h"

#include <cmath>

namespace handgrad::train {
namespace {

bool look(const nn::NamedParameter& named, const Array& array, const char* what, NonFinite& found) {
  const std::int64_t count = count_non_finite(array);
  if (count > 0) found = {named.name, what, "", count, array.numel()};
  return count > 0;
}

}  // namespace

std::int64_t count_non_finite(const Array& array) {
  return dispatch(array.dtype(), [&](auto zero) {
    const auto* numbers = array.data<decltype(zero)>();
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < array.numel(); ++i) count += std::isfinite(numbers[i]) ? 0 : 1;
    return count;
  });
}

NonFinite find_in_parameters(const Parameters& parameters) {
  NonFinite found;
  for (const nn::NamedParameter& named : parameters) {
    if (look(named, named.parameter->array(), "a parameter", found)) break;
  }
  return found;
}

NonFinite find_in_gradients(const Parameters& parameters) {
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
  const std::int64_t count = count_non_finite(array);
  if (count > 0) first_ = {node.op(), what, node.scope().path, count, array.numel()};
}

}  // namespace handgrad::train
