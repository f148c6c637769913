// Subtraction of a double from a vector of either type.
#pragma once

#include "handgrad/core/kernels/vec.h"

namespace handgrad::kernels::HANDGRAD_TARGET {

// x - offset: what T cannot hold of the offset is taken off in a second step. When x is near the offset the first
// step is exact, and the result has all the digits of T.
template <class T>
class WideOffset {
 public:
  HANDGRAD_INLINE explicit WideOffset(double offset)
      : high_(set(static_cast<T>(offset))), low_(set(static_cast<T>(offset - static_cast<T>(offset)))) {}

  HANDGRAD_INLINE Vec<T> taken_from(Vec<T> x) const {
    if constexpr (sizeof(T) == sizeof(double)) return x - high_;
    return (x - high_) - low_;
  }

 private:
  Vec<T> high_, low_;
};

}  // namespace handgrad::kernels::HANDGRAD_TARGET
