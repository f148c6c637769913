#include "handgrad/optim/clip.h"

#include <algorithm>
#include <cmath>

#include "handgrad/core/kernels/update_rows.h"
#include "handgrad/core/parallel.h"

namespace handgrad::optim {
namespace {

constexpr std::int64_t kChunk = 32768;

bool counts(const nn::NamedParameter& named) {
  return !named.parameter->frozen() && named.parameter->has_grad();
}

template <class Visit>
void visit_values(const Array& gradient, const Visit& visit) {
  dispatch(gradient.dtype(), [&](auto zero) {
    const auto* numbers = gradient.data<decltype(zero)>();
    for (std::int64_t i = 0; i < gradient.numel(); ++i) visit(static_cast<double>(numbers[i]));
  });
}

bool all_finite(const Array& gradient) {
  bool finite = true;
  visit_values(gradient, [&](double x) { finite = finite && std::isfinite(x); });
  return finite;
}

// All are finite, but their squares overflow a double: in units of the largest they do not.
double scaled_norm(const Parameters& parameters) {
  double largest = 0, sum = 0;
  for (const nn::NamedParameter& named : parameters) {
    if (!counts(named)) continue;
    visit_values(named.parameter->grad(), [&](double x) { largest = std::max(largest, std::abs(x)); });
  }
  for (const nn::NamedParameter& named : parameters) {
    if (!counts(named)) continue;
    visit_values(named.parameter->grad(), [&](double x) { sum += (x / largest) * (x / largest); });
  }
  return largest * std::sqrt(sum);
}

}  // namespace

double GlobalNorm::sum_of_squares(const Array& gradient) {
  return dispatch(gradient.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* numbers = gradient.data<T>();
    const std::int64_t count = gradient.numel();
    if (count <= kChunk) return HANDGRAD_ACTIVE(sum_of_squares<T>)(numbers, count);
    partial_sums_.resize(static_cast<std::size_t>((count + kChunk - 1) / kChunk));
    parallel_ranges(count, kChunk, [&](std::int64_t begin, std::int64_t end) {
      partial_sums_[static_cast<std::size_t>(begin / kChunk)] =
          HANDGRAD_ACTIVE(sum_of_squares<T>)(numbers + begin, end - begin);
    });
    double sum = 0;
    for (const double partial : partial_sums_) sum += partial;
    return sum;
  });
}

GradientNorm GlobalNorm::operator()(const Parameters& parameters) {
  double sum = 0;
  for (const nn::NamedParameter& named : parameters) {
    if (counts(named)) sum += sum_of_squares(named.parameter->grad());
  }
  GradientNorm result{.norm = std::sqrt(sum), .first_non_finite = {}};
  if (std::isfinite(sum)) [[likely]]
    return result;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (counts(parameters[i]) && !all_finite(parameters[i].parameter->grad())) {
      result.first_non_finite = i;
      return result;
    }
  }
  result.norm = scaled_norm(parameters);
  return result;
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 && norm > max_norm ? max_norm / (norm + 1e-6) : 1;
}

}  // namespace handgrad::optim
