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

/// One factor of a product: stored rows `ld` apart, read as they are or transposed.
template <class T>
struct Factor {
  const T* data;
  std::int64_t ld;
  bool transposed = false;
};

/// C [m, n] = op(A) [m, k] op(B) [k, n], not accumulating and without bias.
template <class T>
Matmul<T> product(std::int64_t m, std::int64_t n, std::int64_t k, Factor<T> a, Factor<T> b, T* c,
                  std::int64_t ldc) {
  Matmul<T> x;
  x.m = m, x.n = n, x.k = k;
  x.a = a.data, x.lda = a.ld, x.a_transposed = a.transposed;
  x.b = b.data, x.ldb = b.ld, x.b_transposed = b.transposed;
  x.c = c, x.ldc = ldc;
  return x;
}

/// Computes them, on several threads when there is more than about 20 us of work. T is float or double. Bits
/// do not depend on the threads, and nothing is allocated.
template <class T>
void matmul(const Matmul<T>& x);

}  // namespace handgrad
