// The matrix product: one for all shapes and both types.
#pragma once

#include "handgrad/core/kernels/targets.h"

namespace handgrad::kernels {

/// C [m, n] = op(A) [m, k] op(B) [k, n], all row-major; ld is the distance from one stored row to the next.
///
/// Every element of C is one chain of fused multiply-adds in the order of k, starting from 0, or from the old
/// value when accumulating; the bias is added once, at the end. So its bits depend on its row of op(A) and
/// its column of op(B) alone: not on m, n, tiles, threads, or on whether k was handed over in one piece or in
/// several. No term is left out: 0 * inf is NaN.
template <class T>
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  const T* a = nullptr;
  int64_t lda = 0;
  bool a_transposed = false;  ///< stored [k, m] instead of [m, k]
  const T* b = nullptr;
  int64_t ldb = 0;
  bool b_transposed = false;  ///< stored [n, k] instead of [k, n]
  T* c = nullptr;             ///< must not overlap a or b
  int64_t ldc = 0;
  bool accumulate = false;  ///< C += instead of C =
  const T* bias = nullptr;  ///< [n], added to every row of the finished product, or nullptr
};

}  // namespace handgrad::kernels

/// Computes `rows` rows from `row` and `columns` columns from `column` of C. Parts may run on different threads. Needs no
/// work space beyond 32 KiB of stack.
HANDGRAD_EACH_TARGET(template <class T> void gemm(const Product<T>& product, int64_t row, int64_t rows,
                                                  int64_t column, int64_t columns);)
