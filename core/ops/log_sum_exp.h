// The logarithm of the sum of exponentials of a row: what log_softmax subtracts and what cross_entropy measures.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "handgrad/core/kernels/table.h"
#include "handgrad/core/random.h"

namespace handgrad {

/// log_sum[i] = log(sum(exp(x[i, :]))) in double, by way of the largest element, so that nothing overflows. -inf for a
/// row of nothing but -inf, NaN for a row with NaN or +inf.
template <class T>
void log_sum_exp(double* log_sum, const T* x, std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kBlock = 64;
  double sum[kBlock];
  for (std::int64_t first = 0; first < rows; first += kBlock) {
    const std::int64_t n = std::min(kBlock, rows - first);
    double* const out = log_sum + first;  // holds the largest at first
    kernels::table<T>().softmax_rows.sum_exp(out, sum, x + first * width, n, width);
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = sum[i] > 0 ? out[i] + portable_log(sum[i]) : out[i] + sum[i];
  }
}

}  // namespace handgrad
