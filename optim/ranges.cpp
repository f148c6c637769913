#include "handgrad/optim/ranges.h"

#include <fmt/format.h>

#include <cmath>

#include "handgrad/core/error.h"

namespace handgrad::optim {

void require_at_least_0(const char* owner, const char* key, double value) {
  if (value >= 0 && std::isfinite(value)) return;
  throw ValueError(owner, fmt::format("{} must be a finite number of at least 0, got {}", key, value));
}

void require_below_1(const char* owner, const char* key, double value) {
  if (value >= 0 && value < 1) return;
  throw ValueError(owner, fmt::format("{} must be at least 0 and below 1, got {}", key, value));
}

}  // namespace handgrad::optim
