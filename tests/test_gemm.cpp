// The matrix product: against a chain in double, and bit for bit against itself cut in every way.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "expect.h"
#include "handgrad/core/kernels/gemm.h"

namespace {

using handgrad::expect::on_each_target;
using handgrad::kernels::Product;

// Small numbers of both signs, the same on every run.
class Numbers {
 public:
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(static_cast<int32_t>(state_ >> 32)) / 2147483648.0;
  }

 private:
  uint64_t state_ = 2266;
};

template <class T>
std::vector<T> filled(int64_t size, Numbers& numbers) {
  std::vector<T> v(static_cast<size_t>(size));
  for (T& x : v) x = static_cast<T>(numbers.next());
  return v;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Operands of one product, stored with rows `gap` wider than they need to be.
template <class T>
struct Problem {
  Problem(int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed, int64_t gap = 0) {
    Numbers numbers;
    const int64_t a_rows = a_transposed ? k : m;
    const int64_t b_rows = b_transposed ? n : k;
    product = {.m = m,
               .n = n,
               .k = k,
               .lda = (a_transposed ? m : k) + gap,
               .a_transposed = a_transposed,
               .ldb = (b_transposed ? k : n) + gap,
               .b_transposed = b_transposed,
               .ldc = n + gap};
    a = filled<T>(a_rows * product.lda, numbers);
    b = filled<T>(b_rows * product.ldb, numbers);
    c = filled<T>(m * product.ldc, numbers);
    bias = filled<T>(n, numbers);
    product.a = a.data();
    product.b = b.data();
  }

  double a_at(int64_t i, int64_t p) const {
    return a[static_cast<size_t>(product.a_transposed ? p * product.lda + i : i * product.lda + p)];
  }
  double b_at(int64_t p, int64_t j) const {
    return b[static_cast<size_t>(product.b_transposed ? j * product.ldb + p : p * product.ldb + j)];
  }

  // C, computed in one call.
  std::vector<T> run(bool accumulate, bool with_bias) {
    std::vector<T> out = c;
    Product<T> x = product;
    x.c = out.data();
    x.accumulate = accumulate;
    x.bias = with_bias ? bias.data() : nullptr;
    HANDGRAD_ACTIVE(gemm<T>)(x, 0, x.m, 0, x.n);
    return out;
  }

  Product<T> product;
  std::vector<T> a, b, c, bias;
};

template <class T>
double worst_error(Problem<T>& problem, const std::vector<T>& got, bool accumulate, bool with_bias) {
  const Product<T>& x = problem.product;
  double worst = 0;
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.ldc; ++j) {
      const size_t at = static_cast<size_t>(i * x.ldc + j);
      if (j >= x.n) {  // beyond the row: must not be written
        if (got[at] != problem.c[at]) return std::numeric_limits<double>::infinity();
        continue;
      }
      double want = accumulate ? static_cast<double>(problem.c[at]) : 0.0;
      for (int64_t p = 0; p < x.k; ++p) want += problem.a_at(i, p) * problem.b_at(p, j);
      if (with_bias) want += static_cast<double>(problem.bias[static_cast<size_t>(j)]);
      const double error = std::abs(static_cast<double>(got[at]) - want);
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

template <class T>
void check_shape(int64_t m, int64_t n, int64_t k, bool ta, bool tb, int64_t gap) {
  Problem<T> problem(m, n, k, ta, tb, gap);
  const double tolerance =
      static_cast<double>(std::numeric_limits<T>::epsilon()) * static_cast<double>(k + 4);
  for (int variant = 0; variant < 4; ++variant) {
    const bool accumulate = (variant & 1) != 0;
    const bool with_bias = (variant & 2) != 0;
    const double error = worst_error(problem, problem.run(accumulate, with_bias), accumulate, with_bias);
    INFO("m " << m << " n " << n << " k " << k << " transposed " << ta << tb << " gap " << gap
              << " accumulate " << accumulate << " bias " << with_bias);
    REQUIRE(error <= tolerance);
  }
}

TEST_CASE_TEMPLATE("gemm: every shape, transpose and form equals a chain in double", T, float, double) {
  const int64_t sizes[] = {0, 1, 2, 3, 5, 7, 8, 12, 13, 15, 16, 17, 31, 32, 33, 47, 63, 65, 100};
  on_each_target([&](const std::string&) {
    int turn = 0;  // every triple of sizes, each with one of the eight layouts in turn
    for (const int64_t m : sizes) {
      for (const int64_t n : sizes) {
        for (const int64_t k : sizes) {
          ++turn;
          check_shape<T>(m, n, k, (turn & 1) != 0, (turn & 2) != 0, (turn & 4) != 0 ? 5 : 0);
        }
      }
    }
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        check_shape<T>(29, 70, 600, ta, tb, 0);   // k in several pieces
        check_shape<T>(26, 40, 1024, ta, tb, 0);  // rows that share a cache set
        check_shape<T>(130, 17, 257, ta, tb, 1);
      }
    }
  });
}

TEST_CASE_TEMPLATE("gemm: a row does not depend on the rows computed with it", T, float, double) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Problem<T> problem(100, 75, 300, ta, tb);
      const std::vector<T> all = problem.run(true, true);
      std::vector<T> by_row = problem.c;
      Product<T> x = problem.product;
      x.c = by_row.data();
      x.accumulate = true;
      x.bias = problem.bias.data();
      for (int64_t i = 0; i < x.m; ++i) HANDGRAD_ACTIVE(gemm<T>)(x, i, 1, 0, x.n);
      CHECK(same_bits(all, by_row));

      std::vector<T> by_block = problem.c;
      x.c = by_block.data();
      for (int64_t j = 0; j < x.n; j += 11) {
        for (int64_t i = 0; i < x.m; i += 37) {
          HANDGRAD_ACTIVE(gemm<T>)(x, i, std::min<int64_t>(37, x.m - i), j, std::min<int64_t>(11, x.n - j));
        }
      }
      CHECK(same_bits(all, by_block));
    }
  }
}

TEST_CASE_TEMPLATE("gemm: k in two halves, the second accumulating, equals k at once", T, float, double) {
  Problem<T> problem(33, 45, 700, false, false);
  const std::vector<T> at_once = problem.run(false, false);
  std::vector<T> halves = problem.c;
  Product<T> x = problem.product;
  x.c = halves.data();
  x.k = 123;
  HANDGRAD_ACTIVE(gemm<T>)(x, 0, x.m, 0, x.n);
  x.a += 123;
  x.b += 123 * x.ldb;
  x.k = 700 - 123;
  x.accumulate = true;
  HANDGRAD_ACTIVE(gemm<T>)(x, 0, x.m, 0, x.n);
  CHECK(same_bits(at_once, halves));
}

TEST_CASE_TEMPLATE("gemm: how an operand is stored does not change a bit", T, float, double) {
  Problem<T> plain(50, 60, 280, false, false);
  std::vector<T> at(plain.a.size()), bt(plain.b.size());
  for (int64_t i = 0; i < 50; ++i) {
    for (int64_t p = 0; p < 280; ++p)
      at[static_cast<size_t>(p * 50 + i)] = plain.a[static_cast<size_t>(i * 280 + p)];
  }
  for (int64_t p = 0; p < 280; ++p) {
    for (int64_t j = 0; j < 60; ++j)
      bt[static_cast<size_t>(j * 280 + p)] = plain.b[static_cast<size_t>(p * 60 + j)];
  }
  const std::vector<T> want = plain.run(true, true);
  Problem<T> turned(50, 60, 280, true, true);
  turned.a = at;
  turned.b = bt;
  turned.c = plain.c;
  turned.bias = plain.bias;
  turned.product.a = turned.a.data();
  turned.product.b = turned.b.data();
  CHECK(same_bits(want, turned.run(true, true)));
}

TEST_CASE_TEMPLATE("gemm: the bias is added once, to the finished product", T, float, double) {
  Problem<T> problem(20, 50, 300, false, true);
  std::vector<T> want = problem.run(false, false);
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t j = 0; j < 50; ++j)
      want[static_cast<size_t>(i * 50 + j)] += problem.bias[static_cast<size_t>(j)];
  }
  CHECK(same_bits(want, problem.run(false, true)));
}

TEST_CASE_TEMPLATE("gemm: AVX2 and AVX-512 give the same bits", T, float, double) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Problem<T> problem(67, 91, 333, ta, tb, 3);
      std::vector<T> fused;
      on_each_target([&](const std::string& target) {
        if (target == "baseline") return;
        const std::vector<T> here = problem.run(true, true);
        if (fused.empty()) fused = here;
        CHECK(same_bits(here, fused));
      });
    }
  }
}

TEST_CASE_TEMPLATE("gemm: zeros are multiplied like any number, so 0 * inf is NaN", T, float, double) {
  const T inf = std::numeric_limits<T>::infinity();
  on_each_target([&](const std::string&) {
    for (const int64_t rows : {int64_t{1}, int64_t{40}}) {
      Problem<T> problem(rows, 40, 20, false, true);
      problem.a.assign(problem.a.size(), T(0));
      problem.b[static_cast<size_t>(7 * 20 + 3)] = inf;                                  // column 7
      problem.b[static_cast<size_t>(9 * 20 + 3)] = std::numeric_limits<T>::quiet_NaN();  // column 9
      const std::vector<T> y = problem.run(false, false);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < 40; ++j) {
          const T got = y[static_cast<size_t>(i * 40 + j)];
          if (j == 7 || j == 9) {
            CHECK(std::isnan(got));
          } else {
            CHECK(got == T(0));
          }
        }
      }
    }
  });
}

}  // namespace
