// The product as operations call it: batches, shared operands, threads.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "handgrad/core/ops/matmul.h"
#include "handgrad/core/parallel.h"

namespace {

using handgrad::Matmul;

template <class T>
std::vector<T> numbers(int64_t size, int64_t start) {
  std::vector<T> v(static_cast<size_t>(size));
  uint32_t state = static_cast<uint32_t>(start) * 2654435761u + 1;
  for (T& x : v) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<T>(static_cast<int32_t>(state)) / T(2147483648.0);
  }
  return v;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// What matmul must give, bit for bit: one product after the other, each in one piece.
template <class T>
void one_by_one(const Matmul<T>& x) {
  for (int64_t i = 0; i < x.batch; ++i) {
    handgrad::kernels::Product<T> product = x;
    product.a += i * x.a_stride;
    product.b += i * x.b_stride;
    product.c += i * x.c_stride;
    if (x.c_stride == 0) {
      product.accumulate = x.accumulate || i > 0;
      product.bias = i + 1 == x.batch ? x.bias : nullptr;
    }
    HANDGRAD_ACTIVE(gemm<T>)(product, 0, x.m, 0, x.n);
  }
}

template <class T>
void check(Matmul<T> x, int64_t a_size, int64_t b_size, int64_t c_size) {
  const std::vector<T> a = numbers<T>(a_size, 1), b = numbers<T>(b_size, 2), old = numbers<T>(c_size, 3);
  const std::vector<T> bias = numbers<T>(x.n, 4);
  std::vector<T> want = old;
  x.a = a.data();
  x.b = b.data();
  x.c = want.data();
  if (!x.accumulate) x.bias = bias.data();
  one_by_one(x);
  const int before = handgrad::thread_count();
  for (const int threads : {1, 2, 3}) {
    handgrad::set_thread_count(threads);
    std::vector<T> got = old;
    x.c = got.data();
    handgrad::matmul(x);
    INFO("m " << x.m << " n " << x.n << " k " << x.k << " batch " << x.batch << " threads " << threads);
    CHECK(same_bits(want, got));
  }
  handgrad::set_thread_count(before);
}

TEST_CASE_TEMPLATE("matmul: any number of threads, any cut, the same bits", T, float, double) {
  const int64_t shapes[][3] = {{1, 1, 1},       {4, 4, 4},      {33, 65, 17},   {768, 128, 130},
                               {130, 700, 200}, {1, 3000, 600}, {3000, 5, 300}, {600, 40, 300},
                               {96, 96, 1500},  {0, 5, 3}};
  for (const auto& [m, n, k] : shapes) {
    for (const bool accumulate : {false, true}) {
      Matmul<T> x;
      x.m = m, x.n = n, x.k = k;
      x.lda = m, x.a_transposed = true;
      x.ldb = k, x.b_transposed = true;
      x.ldc = n + 1;
      x.accumulate = accumulate;
      check(x, m * k, n * k, m * x.ldc);
    }
  }
}

TEST_CASE_TEMPLATE("matmul: a batch, with one operand for each product or one for all", T, float, double) {
  for (const int64_t batch : {int64_t{2}, int64_t{7}, int64_t{48}}) {
    for (int shared = 0; shared < 4; ++shared) {
      Matmul<T> x;
      x.m = 64, x.n = 33, x.k = 64;
      x.lda = x.k, x.ldb = x.k, x.ldc = x.n;
      x.b_transposed = true;
      x.batch = batch;
      x.a_stride = (shared & 1) != 0 ? 0 : x.m * x.k;
      x.b_stride = (shared & 2) != 0 ? 0 : x.n * x.k;
      x.c_stride = x.m * x.n;
      check(x, x.m * x.k * batch, x.n * x.k * batch, x.m * x.n * batch);
    }
  }
  Matmul<T> few_large;  // more chunks than products
  few_large.m = 300, few_large.n = 200, few_large.k = 200;
  few_large.lda = 200, few_large.ldb = 200, few_large.ldc = 200;
  few_large.batch = 3;
  few_large.a_stride = 300 * 200, few_large.b_stride = 200 * 200, few_large.c_stride = 300 * 200;
  check(few_large, 3 * 300 * 200, 3 * 200 * 200, 3 * 300 * 200);
}

TEST_CASE_TEMPLATE("matmul: products summed into one C continue its chains", T, float, double) {
  for (const bool accumulate : {false, true}) {
    Matmul<T> x;
    x.m = 200, x.n = 100, x.k = 50;
    x.lda = x.m, x.a_transposed = true;
    x.ldb = x.n, x.ldc = x.n;
    x.accumulate = accumulate;
    x.batch = 20;
    x.a_stride = x.m * x.k, x.b_stride = x.k * x.n;
    check(x, 20 * x.m * x.k, 20 * x.k * x.n, x.m * x.n);
    // The same as one long product, whose rows of A and B follow each other.
    const std::vector<T> a = numbers<T>(20 * x.m * x.k, 1), b = numbers<T>(20 * x.k * x.n, 2);
    std::vector<T> summed = numbers<T>(x.m * x.n, 3), at_once = summed;
    x.a = a.data(), x.b = b.data(), x.c = summed.data();
    handgrad::matmul(x);
    x.batch = 1, x.k = 20 * 50, x.c = at_once.data();
    handgrad::matmul(x);
    CHECK(same_bits(summed, at_once));
  }
}

}  // namespace
