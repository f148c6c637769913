#include "handgrad/train/statistics.h"

#include <cmath>

namespace handgrad::train {
namespace {

/// The one arithmetic for a recording that is read and for a parameter at work: the same bits. `beside` is called once for
/// each element: its sums cost less than another pass.
template <class Value, class Start, class Beside>
Statistics statistics_of(std::size_t n, const Value& value, const Start& start, const Beside& beside) {
  Statistics s;
  if (n == 0) return s;
  s.min = s.max = value(0);
  double largest = -1;
  for (std::size_t i = 0; i < n; ++i) {
    beside(i);
    const double v = value(i);
    s.mean += v;
    if (v < s.min) s.min = v;
    if (v > s.max) s.max = v;
    const double distance = std::abs(v - start(i));
    if (distance <= largest || std::isnan(largest)) continue;
    largest = distance;
    s.farthest = i;
  }
  s.mean /= static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) s.std += (value(i) - s.mean) * (value(i) - s.mean);
  s.std = std::sqrt(s.std / static_cast<double>(n));
  s.farthest_value = value(s.farthest);
  return s;
}

/// Raw pointers: what a thread may see of a parameter. No gradient, or no value before: nullptr.
template <class T>
StepStatistics step_statistics_of(std::size_t n, const T* value, const T* start, const T* gradient,
                                  const T* before) {
  const auto at = [](const T* numbers) { return [numbers](std::size_t i) -> double { return numbers[i]; }; };
  double gradient_squares = 0, update_squares = 0;
  StepStatistics s;
  s.value = statistics_of(n, at(value), at(start), [&](std::size_t i) {
    const double g = gradient == nullptr ? 0 : static_cast<double>(gradient[i]);
    const double u = before == nullptr ? 0 : static_cast<double>(value[i]) - static_cast<double>(before[i]);
    gradient_squares += g * g;
    update_squares += u * u;
  });
  s.gradient_norm = gradient == nullptr ? -1 : std::sqrt(gradient_squares);
  s.update_norm = before == nullptr ? -1 : std::sqrt(update_squares);
  return s;
}

}  // namespace

Statistics statistics(const std::vector<double>& value, const std::vector<double>& start) {
  return statistics_of(
      value.size(), [&](std::size_t i) { return value[i]; },
      [&](std::size_t i) { return start.empty() ? 0 : start[i]; }, [](std::size_t) {});
}

double norm_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number * number;
  return std::sqrt(sum);
}

StepStatistics step_statistics(const Parameter& parameter, const Array& start, const Array* before) {
  return dispatch(parameter.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const bool has_gradient = before != nullptr && parameter.has_grad();
    return step_statistics_of<T>(static_cast<std::size_t>(parameter.numel()), parameter.array().data<T>(),
                                 start.data<T>(), has_gradient ? parameter.grad().data<T>() : nullptr,
                                 before == nullptr ? nullptr : before->data<T>());
  });
}

}  // namespace handgrad::train
