// Functions of one number and reductions, for every instruction set that this machine has.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "handgrad/core/kernels/table.h"

namespace {

using handgrad::kernels::Function;
using handgrad::kernels::Pointwise;
using handgrad::kernels::table_of;

const char* const kTargets[] = {"baseline", "avx2", "avx512"};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// About 600,000 floats: every sign, exponent and ending, NaN and infinities among them; the middle, where the
// functions bend; and the neighbourhoods where a formula changes.
std::vector<float> all_kinds_of_floats() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 10007) {
    const uint32_t pattern = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &pattern, sizeof value);
    x.push_back(value);
  }
  for (int i = 0; i < 200000; ++i) x.push_back(static_cast<float>(-16 + 0.00016 * i));
  for (const float center : {0.0f, 0.625f, 0.92f, 1.0f, 4.0f, 88.7228f, -87.3365f, -103.97f, 9.01f,
                             0.70710678f, 1.41421356f, 1.17549435e-38f}) {
    float up = center, down = center;
    for (int i = 0; i < 500; ++i) {
      x.insert(x.end(), {up, down, -up, -down});
      up = std::nextafter(up, 1e38f);
      down = std::nextafter(down, -1e38f);
    }
  }
  for (const float special :
       {0.0f, -0.0f, static_cast<float>(kInf), static_cast<float>(-kInf), static_cast<float>(kNan)}) {
    x.push_back(special);
  }
  return x;
}

// How far `got` is from `want`, in units of the last place of a float of want's size.
double ulps(float got, double want) {
  const float rounded = static_cast<float>(want);
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : kInf;
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : kInf;
  if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : kInf;
  int exponent;
  std::frexp(want, &exponent);
  return std::abs(static_cast<double>(got) - want) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

template <class Exact>
double worst_ulps(const Function<float>& f, const Exact& exact) {
  static const std::vector<float> x = all_kinds_of_floats();
  std::vector<float> y(x.size());
  f.forward(y.data(), x.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  float where = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], exact(static_cast<double>(x[i])));
    if (error > worst) {
      worst = error;
      where = x[i];
    }
  }
  CAPTURE(where);
  CHECK(worst <= 2);
  return worst;
}

TEST_CASE("pointwise: exp, log, tanh, sigmoid and erf of a float are within 2 ulp everywhere") {
  for (const std::string name : kTargets) {
    const auto* table = table_of<float>(name.c_str());
    if (table == nullptr) continue;
    CAPTURE(name);
    const Pointwise<float>& f = table->pointwise;
    worst_ulps(f.exp, [](double x) { return std::exp(x); });
    worst_ulps(f.log, [](double x) { return std::log(x); });
    worst_ulps(f.tanh, [](double x) { return std::tanh(x); });
    worst_ulps(f.sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); });
    worst_ulps(f.erf, [](double x) { return std::erf(x); });
    worst_ulps(f.sqrt, [](double x) { return std::sqrt(x); });
  }
}

// A function as the mathematics has it, and which of x and y its derivative is computed from.
struct Case {
  std::string name;
  Function<float> Pointwise<float>::*of_float;
  Function<double> Pointwise<double>::*of_double;
  double (*value)(double);
  bool saves_y;
  bool positive;  // defined for positive x only
};

double gelu_tanh(double x) {
  return x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
}
double gelu_exact(double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }

const Case kCases[] = {
    {"square", &Pointwise<float>::square, &Pointwise<double>::square, [](double x) { return x * x; }, false,
     false},
    {"sqrt", &Pointwise<float>::sqrt, &Pointwise<double>::sqrt, [](double x) { return std::sqrt(x); }, true,
     true},
    {"rsqrt", &Pointwise<float>::rsqrt, &Pointwise<double>::rsqrt, [](double x) { return 1 / std::sqrt(x); },
     true, true},
    {"exp", &Pointwise<float>::exp, &Pointwise<double>::exp, [](double x) { return std::exp(x); }, true,
     false},
    {"log", &Pointwise<float>::log, &Pointwise<double>::log, [](double x) { return std::log(x); }, false,
     true},
    {"tanh", &Pointwise<float>::tanh, &Pointwise<double>::tanh, [](double x) { return std::tanh(x); }, true,
     false},
    {"sigmoid", &Pointwise<float>::sigmoid, &Pointwise<double>::sigmoid,
     [](double x) { return 1 / (1 + std::exp(-x)); }, true, false},
    {"erf", &Pointwise<float>::erf, &Pointwise<double>::erf, [](double x) { return std::erf(x); }, false,
     false},
    {"relu", &Pointwise<float>::relu, &Pointwise<double>::relu, [](double x) { return x > 0 ? x : 0; }, true,
     false},
    {"silu", &Pointwise<float>::silu, &Pointwise<double>::silu,
     [](double x) { return x / (1 + std::exp(-x)); }, false, false},
    {"gelu_tanh", &Pointwise<float>::gelu_tanh, &Pointwise<double>::gelu_tanh, gelu_tanh, false, false},
    {"gelu_exact", &Pointwise<float>::gelu_exact, &Pointwise<double>::gelu_exact, gelu_exact, false, false},
};

template <class T>
const Function<T>& function_of(const Case& c, const Pointwise<T>& all) {
  if constexpr (sizeof(T) == 4) {
    return all.*c.of_float;
  } else {
    return all.*c.of_double;
  }
}

// 4th-order central difference.
double slope(const Case& c, double x) {
  const double h = 2.5e-4;
  return (8 * (c.value(x + h) - c.value(x - h)) - (c.value(x + 2 * h) - c.value(x - 2 * h))) / (12 * h);
}

TEST_CASE_TEMPLATE("pointwise: values and derivatives equal the mathematics", T, float, double) {
  const double exactness = sizeof(T) == 4 ? 2e-6 : 1e-9;  // 1e-9: the difference quotient's own error
  for (const std::string name : kTargets) {
    const auto* table = table_of<T>(name.c_str());
    if (table == nullptr) continue;
    for (const Case& c : kCases) {
      const Function<T>& f = function_of(c, table->pointwise);
      std::vector<T> x;
      for (double v = c.positive ? 0.107 : -6.003; v < 6; v += 0.0731) x.push_back(static_cast<T>(v));
      const int64_t n = static_cast<int64_t>(x.size());
      std::vector<T> y(x.size()), dy(x.size()), dx(x.size()), sum(x.size(), T(10));
      f.forward(y.data(), x.data(), n);
      for (size_t i = 0; i < x.size(); ++i)
        dy[i] = static_cast<T>(i % 5 == 0 ? 0.0 : 0.5 - 0.25 * static_cast<double>(i % 7));
      const std::vector<T>& saved = c.saves_y ? y : x;
      f.backward(dx.data(), dy.data(), saved.data(), n, false);
      f.backward(sum.data(), dy.data(), saved.data(), n, true);
      for (size_t i = 0; i < x.size(); ++i) {
        INFO(c.name << " at " << static_cast<double>(x[i]) << " on " << name);
        const double v = static_cast<double>(x[i]);
        REQUIRE(static_cast<double>(y[i]) == doctest::Approx(c.value(v)).epsilon(exactness));
        const double want = static_cast<double>(dy[i]) * slope(c, v);
        REQUIRE(std::abs(static_cast<double>(dx[i]) - want) <= exactness * (1 + std::abs(want)));
        REQUIRE(sum[i] == T(10) + dx[i]);
      }
    }
  }
}

TEST_CASE_TEMPLATE("pointwise: zero upstream gives zero, whatever the derivative is", T, float, double) {
  const std::vector<T> saved = {
      T(0), T(-0.0), static_cast<T>(kInf), static_cast<T>(-kInf), static_cast<T>(kNan), T(-1), T(3e38)};
  const std::vector<T> dy(saved.size(), T(0));
  for (const std::string name : kTargets) {
    const auto* table = table_of<T>(name.c_str());
    if (table == nullptr) continue;
    for (const Case& c : kCases) {
      std::vector<T> dx(saved.size(), T(7));
      function_of(c, table->pointwise)
          .backward(dx.data(), dy.data(), saved.data(), static_cast<int64_t>(saved.size()), false);
      INFO(c.name << " on " << name);
      for (const T value : dx) CHECK(value == T(0));
    }
    // A square root at 0 has gradient 0 for any upstream.
    const T one = 1, zero = 0;
    T dx = 7;
    table->pointwise.sqrt.backward(&dx, &one, &zero, 1, false);
    CHECK(dx == T(0));
  }
}

TEST_CASE_TEMPLATE("pointwise: NaN stays NaN, and large numbers do not turn into NaN", T, float, double) {
  for (const std::string name : kTargets) {
    const auto* table = table_of<T>(name.c_str());
    if (table == nullptr) continue;
    for (const Case& c : kCases) {
      const Function<T>& f = function_of(c, table->pointwise);
      INFO(c.name << " on " << name);
      const std::vector<T> x = {static_cast<T>(kNan), T(1e30), T(-1e30), T(1), T(0)};
      std::vector<T> y(5), dx(5);
      f.forward(y.data(), x.data(), 5);
      CHECK(std::isnan(y[0]));
      CHECK_FALSE(std::isnan(y[1]));
      if (!c.positive) CHECK_FALSE(std::isnan(y[2]));
      const std::vector<T> dy(5, T(1));
      f.backward(dx.data(), dy.data(), x.data(), 5, false);
      if (!c.saves_y) {
        CHECK(std::isnan(dx[0]));
        CHECK_FALSE(std::isnan(dx[1]));
        CHECK_FALSE(std::isnan(dx[2]));
      }
    }
  }
}

TEST_CASE("pointwise: AVX2 and AVX-512 give the same bits") {
  const auto* avx2 = table_of<float>("avx2");
  const auto* avx512 = table_of<float>("avx512");
  if (avx2 == nullptr || avx512 == nullptr) {
    MESSAGE("skipped: needs a machine with both");
    return;
  }
  std::vector<float> x = all_kinds_of_floats();
  x.resize(x.size() / 16 * 16 + 5);  // end on a short row
  for (float& v : x) {
    if (std::isnan(v)) v = 0.5f;  // a NaN's payload is nobody's concern
  }
  const int64_t n = static_cast<int64_t>(x.size());
  for (const Case& c : kCases) {
    std::vector<float> a(x.size()), b(x.size());
    (avx2->pointwise.*c.of_float).forward(a.data(), x.data(), n);
    (avx512->pointwise.*c.of_float).forward(b.data(), x.data(), n);
    int64_t different = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      different += std::memcmp(&a[i], &b[i], sizeof(float)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]));
    }
    INFO(c.name);
    CHECK(different == 0);
  }
}

TEST_CASE_TEMPLATE("elementwise: every broadcast, written or added, equals plain loops", T, float, double) {
  for (const std::string name : kTargets) {
    const auto* table = table_of<T>(name.c_str());
    if (table == nullptr) continue;
    CAPTURE(name);
    const auto& e = table->elementwise;
    const handgrad::kernels::Binary<T> kernels[] = {e.add, e.sub, e.mul, e.div};
    std::vector<T> a(3 * 37), b(3 * 37), y(3 * 37);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<T>(static_cast<double>(i % 11) - 5.5);
      b[i] = static_cast<T>(static_cast<double>(i % 7) + 0.75);
    }
    for (const int64_t columns : {1, 5, 16, 37}) {
      for (int form = 0; form < 16; ++form) {
        const handgrad::kernels::Operand<T> left{a.data(), (form & 1) != 0 ? columns : 0,
                                                 (form & 2) != 0 ? 1 : 0};
        const handgrad::kernels::Operand<T> right{b.data(), (form & 4) != 0 ? columns : 0,
                                                  (form & 8) != 0 ? 1 : 0};
        for (int op = 0; op < 4; ++op) {
          for (const bool add : {false, true}) {
            y.assign(y.size(), T(2));
            kernels[op](y.data(), left, right, 3, columns, add);
            for (int64_t i = 0; i < 3 * columns; ++i) {
              const T p = a[static_cast<size_t>(i / columns * left.row + i % columns * left.column)];
              const T q = b[static_cast<size_t>(i / columns * right.row + i % columns * right.column)];
              const T value = op == 0 ? p + q : op == 1 ? p - q : op == 2 ? p * q : p / q;
              REQUIRE(y[static_cast<size_t>(i)] == (add ? T(2) + value : value));
            }
            for (size_t i = static_cast<size_t>(3 * columns); i < y.size(); ++i) REQUIRE(y[i] == T(2));
          }
        }
      }
    }
    const T infinity = static_cast<T>(kInf);
    const T upstream[3] = {0, 0, 2}, factor[3] = {infinity, 0, 4};
    T product[3], quotient[3];
    e.chain_mul(product, {upstream, 3, 1}, {factor, 3, 1}, 1, 3, false);
    e.chain_div(quotient, {upstream, 3, 1}, {factor, 3, 1}, 1, 3, false);
    for (int i = 0; i < 2; ++i) CHECK((product[i] == 0 && quotient[i] == 0));
    CHECK(product[2] == T(8));
    CHECK(quotient[2] == T(0.5));

    std::vector<T> sums = b;
    e.accumulate(sums.data(), a.data(), 37);
    e.axpy(sums.data(), T(-2), a.data(), 35);
    for (size_t i = 0; i < sums.size(); ++i) {
      const T once = i < 37 ? b[i] + a[i] : b[i];
      CHECK(sums[i] == (i < 35 ? once - 2 * a[i] : once));
    }
  }
}

TEST_CASE_TEMPLATE("reduce: sums in double, maximum and finiteness", T, float, double) {
  for (const std::string name : kTargets) {
    const auto* table = table_of<T>(name.c_str());
    if (table == nullptr) continue;
    CAPTURE(name);
    const auto& r = table->reduce;
    // H15: a running sum of floats would lose the ones.
    const std::vector<T> far = {T(1e8), T(1), T(-1e8), T(1)};
    CHECK(r.sum(far.data(), 4) == 2.0);
    double column = 0;
    r.add_columns(&column, far.data(), 4, 1, 1);
    CHECK(column == 2.0);

    for (const int64_t n : {0, 1, 7, 16, 17, 64, 100, 333}) {
      std::vector<T> x(static_cast<size_t>(n));
      double want = 0;
      for (size_t i = 0; i < x.size(); ++i)
        want += static_cast<double>(x[i] = static_cast<T>(static_cast<double>(i * i % 91) - 45.25));
      CHECK(r.sum(x.data(), n) == want);  // quarters: exact in any order
      CHECK(r.all_finite(x.data(), n));
      CHECK(r.max(x.data(), n) == (n == 0 ? static_cast<T>(-kInf) : *std::max_element(x.begin(), x.end())));
      for (size_t i = 0; i < x.size(); ++i) {
        for (const double bad : {kNan, kInf, -kInf}) {
          const T good = x[i];
          x[i] = static_cast<T>(bad);
          REQUIRE_FALSE(r.all_finite(x.data(), n));
          if (std::isnan(bad)) REQUIRE(std::isnan(r.max(x.data(), n)));
          x[i] = good;
        }
      }
    }
    for (const int64_t columns : {1, 7, 8, 9, 15, 16, 17, 40}) {
      std::vector<T> x(static_cast<size_t>(5 * 43));
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i);
      std::vector<double> sums(44, 0.5);
      r.add_columns(sums.data(), x.data(), 5, columns, 43);
      for (int64_t j = 0; j < 44; ++j) {
        const double whole = static_cast<double>(5 * j + 43 * (0 + 1 + 2 + 3 + 4));
        REQUIRE(sums[static_cast<size_t>(j)] == (j < columns ? 0.5 + whole : 0.5));
      }
    }
  }
}

}  // namespace
