// Sums and scans over many numbers, in one order on every instruction set; sums in double.
#pragma once

#include <stdint.h>

namespace handgrad::kernels {

template <class T>
struct Reduce {
  /// x[0] + ... + x[n - 1]
  double (*sum)(const T* x, int64_t n);
  /// sums[j] += x[0, j] + ... + x[rows - 1, j] for j < columns; ld is the distance between rows of x
  void (*add_columns)(double* sums, const T* x, int64_t rows, int64_t columns, int64_t ld);
  /// The largest of n numbers; -inf for n = 0, NaN when one of them is NaN
  T (*max)(const T* x, int64_t n);
  /// Whether none of n numbers is infinite or NaN
  bool (*all_finite)(const T* x, int64_t n);
};

}  // namespace handgrad::kernels
