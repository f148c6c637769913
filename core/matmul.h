// The matrix product as operations call it: cut into chunks for the workers, and repeated over a batch.
#pragma once

#include <cstdint>

#include "handgrad/core/kernels/gemm.h"

namespace handgrad {

/// `batch` products of one shape (see kernels::Product for one of them). Operands of product i start `stride`
/// elements after those of product i - 1; stride 0 shares one operand among all. With c_stride 0 the products
/// are summed: into one C, in the order of the batch, each chain of k continuing the one before.
template <class T>
struct Matmul : kernels::Product<T> {
  std::int64_t batch = 1;
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t c_stride = 0;
};

/// Computes them, on several threads when there is more than about 20 us of work. T is float or double. Bits
/// do not depend on the threads, and nothing is allocated.
template <class T>
void matmul(const Matmul<T>& x);

}  // namespace handgrad
