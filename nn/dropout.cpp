#include "handgrad/nn/dropout.h"

#include <fmt/format.h>

#include "handgrad/core/error.h"

namespace handgrad::nn {

double Dropout::checked_rate(const char* what, double rate) {
  if (!(rate >= 0 && rate < 1))
    throw ValueError(what, fmt::format("drop_rate must be at least 0 and less than 1, got {}", rate));
  return rate;
}

}  // namespace handgrad::nn
