// Dropout: which elements stay is drawn by Philox4x32-10 at their positions, so backward draws the same again.
#pragma once

#include <stdint.h>

namespace handgrad::kernels {

/// Where the random numbers come from (core/random.h, RandomKey), and what they decide.
struct DropMask {
  uint32_t key[2];
  uint32_t step;
  uint32_t micro_batch;
  uint32_t threshold;  ///< an element stays if its 32 random bits are at least this: rate * 2^32
  double factor;       ///< of those that stay: 1 / (1 - rate)
};

template <class T>
struct DropoutRows {
  /// y[i] = stays(i) ? x[i] * factor : 0 for begin <= i < end, or += when `add` is set; begin is a multiple of 4, i the
  /// position of the random number. y may be x.
  void (*dropout)(T* y, bool add, const T* x, int64_t begin, int64_t end, const DropMask& mask);
};

}  // namespace handgrad::kernels
