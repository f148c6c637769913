// Sums and scans over many numbers, in one order on every instruction set; sums in double.
#pragma once

#include "handgrad/core/kernels/targets.h"

/// sum: x[0] + ... + x[n - 1].
/// add_columns: sums[j] += x[0, j] + ... + x[rows - 1, j] for j < columns; ld is the distance between rows of x.
/// largest: the largest of n numbers; -inf for n = 0, NaN when one of them is NaN.
HANDGRAD_EACH_TARGET(template <class T> double sum(const T* x, int64_t n); template <class T>
                     void add_columns(double* sums, const T* x, int64_t rows, int64_t columns, int64_t ld);
                     template <class T> T largest(const T* x, int64_t n);)
