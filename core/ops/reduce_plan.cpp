#include "handgrad/core/ops/reduce_plan.h"

#include <algorithm>

namespace handgrad {
namespace {

constexpr std::int64_t kElementsPerPart = 32768;  // about 20 us
constexpr std::int64_t kMostParts = 64;
constexpr std::int64_t kLeastColumns = 1024;      // in a part, so that it reads long stretches
constexpr std::int64_t kElementsPerPartial = 16;  // partial results stay small beside the operand

}  // namespace

ReducePlan::ReducePlan(const Shape& shape, const bool* reduced) {
  bool kept[Shape::kMaxRank] = {};
  for (int i = 0; i < shape.rank(); ++i) {
    elements_ *= shape[i];
    (reduced[i] ? reduced_ : results_) *= shape[i];
    if (shape[i] == 1) continue;
    if (runs_ > 0 && kept[runs_ - 1] == !reduced[i]) {
      size_[runs_ - 1] *= shape[i];
    } else {
      kept[runs_] = !reduced[i];
      size_[runs_++] = shape[i];
    }
  }
  if (runs_ == 0) size_[runs_++] = 1;
  std::int64_t step = 1;
  for (int i = runs_ - 1; i >= 0; --i) {
    step_[i] = kept[i] ? step : 0;
    if (kept[i]) step *= size_[i];
  }

  if (elements_ < 2 * kElementsPerPart) return;
  std::int64_t most = std::min(elements_ / kElementsPerPart, kMostParts);
  if (step_[0] == 0) {
    cut_ = runs_ == 2 && size_[1] >= 2 * kLeastColumns ? Cut::columns : Cut::into_partials;
    most = std::min(most, cut_ == Cut::columns ? size_[1] / kLeastColumns : reduced_ / kElementsPerPartial);
  }
  parts_ = std::max<std::int64_t>(1, std::min(most, cut_run()));
}

}  // namespace handgrad
