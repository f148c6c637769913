// Functions of one number and reductions, for every instruction set that this machine has.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "expect.h"
#include "handgrad/core/kernels/binary.h"
#include "handgrad/core/kernels/reduce.h"
#include "handgrad/core/ops.h"

namespace {

using namespace handgrad;
using expect::on_each_target;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// About 600,000 floats: every sign, exponent and ending, NaN and infinities among them; the middle, where the
// functions bend; and the neighborhoods where a formula changes.
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

// A function as the mathematics has it.
struct Case {
  const char* name;
  Tensor (*compute)(const Tensor&);
  double (*exact)(double);
  bool saves_y;   // the derivative is computed from y, else from x
  bool positive;  // defined for positive x only
};

double exact_gelu_tanh(double x) {
  return x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
}
double exact_gelu(double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }

const Case kCases[] = {
    {"square", square, [](double x) { return x * x; }, false, false},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, true, true},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, true, true},
    {"exp", exp, [](double x) { return std::exp(x); }, true, false},
    {"log", log, [](double x) { return std::log(x); }, false, true},
    {"tanh", tanh, [](double x) { return std::tanh(x); }, true, false},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, true, false},
    {"erf", erf, [](double x) { return std::erf(x); }, false, false},
    {"relu", relu, [](double x) { return x > 0 ? x : 0; }, true, false},
    {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }, false, false},
    {"gelu_tanh", [](const Tensor& x) { return gelu(x); }, exact_gelu_tanh, false, false},
    {"gelu_exact", [](const Tensor& x) { return gelu(x, GeluForm::exact); }, exact_gelu, false, false},
};

const Case& case_of(std::string_view name) {
  return *std::find_if(std::begin(kCases), std::end(kCases), [&](const Case& c) { return c.name == name; });
}

template <class T>
Tensor leaf_of(const std::vector<T>& numbers) {
  Array array({static_cast<std::int64_t>(numbers.size())}, dtype_of<T>());
  std::copy(numbers.begin(), numbers.end(), array.mutable_data<T>());
  return expect::leaf(array);
}

// dx for `dy`, added to what x holds already.
template <class T>
std::vector<T> gradient(const Case& c, const Tensor& x, const std::vector<T>& dy) {
  c.compute(x).backward(leaf_of(dy).array());
  const T* dx = x.grad().data<T>();
  return {dx, dx + x.numel()};
}

TEST_CASE("pointwise: exp, log, tanh, sigmoid and erf of a float are within 2 ulp everywhere") {
  const std::vector<float> x = all_kinds_of_floats();
  const Tensor numbers = leaf_of(x).detach();
  on_each_target([&](const std::string&) {
    for (const char* name : {"exp", "log", "tanh", "sigmoid", "erf", "sqrt"}) {
      const Case& c = case_of(name);
      const Tensor y = c.compute(numbers);
      double worst = 0;
      float where = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double error = ulps(y.array().data<float>()[i], c.exact(static_cast<double>(x[i])));
        if (error > worst) {
          worst = error;
          where = x[i];
        }
      }
      INFO(name << " at " << where);
      CHECK(worst <= 2);
    }
  });
}

// 4th-order central difference.
double slope(const Case& c, double x) {
  const double h = 2.5e-4;
  return (8 * (c.exact(x + h) - c.exact(x - h)) - (c.exact(x + 2 * h) - c.exact(x - 2 * h))) / (12 * h);
}

TEST_CASE_TEMPLATE("pointwise: values and derivatives equal the mathematics", T, float, double) {
  const double exactness = sizeof(T) == 4 ? 2e-6 : 1e-9;  // 1e-9: the difference quotient's own error
  on_each_target([&](const std::string&) {
    for (const Case& c : kCases) {
      std::vector<T> x, dy;
      for (double v = c.positive ? 0.107 : -6.003; v < 6; v += 0.0731) x.push_back(static_cast<T>(v));
      for (size_t i = 0; i < x.size(); ++i)
        dy.push_back(static_cast<T>(i % 5 == 0 ? 0.0 : 0.5 - 0.25 * static_cast<double>(i % 7)));
      const Tensor leaf = leaf_of(x), again = leaf_of(x);
      const Tensor y = c.compute(leaf);
      const std::vector<T> dx = gradient(c, leaf, dy);
      sum(10 * again).backward();
      const std::vector<T> added = gradient(c, again, dy);
      for (size_t i = 0; i < x.size(); ++i) {
        const double v = static_cast<double>(x[i]);
        INFO(c.name << " at " << v);
        REQUIRE(y.array().value(static_cast<std::int64_t>(i)) ==
                doctest::Approx(c.exact(v)).epsilon(exactness));
        const double want = static_cast<double>(dy[i]) * slope(c, v);
        REQUIRE(std::abs(static_cast<double>(dx[i]) - want) <= exactness * (1 + std::abs(want)));
        REQUIRE(added[i] == T(10) + dx[i]);
      }
    }
  });
}

TEST_CASE_TEMPLATE("pointwise: zero upstream gives zero, whatever the derivative is", T, float, double) {
  const std::vector<T> x = {T(0),  T(-0.0), static_cast<T>(kInf), static_cast<T>(-kInf), static_cast<T>(kNan),
                            T(-1), T(3e38)};
  on_each_target([&](const std::string&) {
    for (const Case& c : kCases) {
      INFO(c.name);
      for (const T value : gradient(c, leaf_of(x), std::vector<T>(x.size(), T(0)))) CHECK(value == T(0));
    }
    // A square root at 0 has gradient 0 for any upstream.
    CHECK(gradient(case_of("sqrt"), leaf_of(std::vector<T>{0}), std::vector<T>{1}) == std::vector<T>{0});
  });
}

TEST_CASE_TEMPLATE("pointwise: NaN stays NaN, and large numbers do not turn into NaN", T, float, double) {
  on_each_target([&](const std::string&) {
    for (const Case& c : kCases) {
      INFO(c.name);
      const Tensor x = leaf_of(std::vector<T>{static_cast<T>(kNan), T(1e30), T(-1e30), T(1), T(0)});
      const std::vector<double> y = c.compute(x).values();
      CHECK(std::isnan(y[0]));
      CHECK_FALSE(std::isnan(y[1]));
      if (!c.positive) CHECK_FALSE(std::isnan(y[2]));
      const std::vector<T> dx = gradient(c, x, std::vector<T>(5, T(1)));
      if (!c.saves_y) {
        CHECK(std::isnan(dx[0]));
        CHECK_FALSE(std::isnan(dx[1]));
        CHECK_FALSE(std::isnan(dx[2]));
      }
    }
  });
}

TEST_CASE("pointwise: AVX2 and AVX-512 give the same bits") {
  std::vector<float> x = all_kinds_of_floats();
  x.resize(x.size() / 16 * 16 + 5);  // end on a short row
  for (float& v : x) {
    if (std::isnan(v)) v = 0.5f;  // a NaN's payload does not matter
  }
  const Tensor numbers = leaf_of(x).detach();
  for (const Case& c : kCases) {
    Tensor first;
    on_each_target([&](const std::string& target) {
      if (target == "baseline") return;
      const Tensor y = c.compute(numbers);
      if (!first.defined()) first = y;
      const float *a = first.array().data<float>(), *b = y.array().data<float>();
      int64_t different = 0;
      for (size_t i = 0; i < x.size(); ++i)
        different += std::memcmp(&a[i], &b[i], sizeof(float)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]));
      INFO(c.name);
      CHECK(different == 0);
    });
  }
}

TEST_CASE_TEMPLATE("elementwise: every broadcast, written or added, equals plain loops", T, float, double) {
  on_each_target([&](const std::string&) {
    using kernels::Binary;
    const Binary ops[] = {Binary::add, Binary::sub, Binary::mul, Binary::div};
    std::vector<T> a(3 * 37), b(3 * 37), y(3 * 37);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<T>(static_cast<double>(i % 11) - 5.5);
      b[i] = static_cast<T>(static_cast<double>(i % 7) + 0.75);
    }
    for (const int64_t columns : {1, 5, 16, 37}) {
      for (int form = 0; form < 16; ++form) {
        const kernels::MatrixOperand<T> left{a.data(), (form & 1) != 0 ? columns : 0,
                                             (form & 2) != 0 ? 1 : 0};
        const kernels::MatrixOperand<T> right{b.data(), (form & 4) != 0 ? columns : 0,
                                              (form & 8) != 0 ? 1 : 0};
        for (int op = 0; op < 4; ++op) {
          for (const bool add : {false, true}) {
            y.assign(y.size(), T(2));
            kernels::binary_function<T>(ops[op])(y.data(), left, right, 3, columns, add);
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
    kernels::binary_function<T>(Binary::chain_mul)(product, {upstream, 3, 1}, {factor, 3, 1}, 1, 3, false);
    kernels::binary_function<T>(Binary::chain_div)(quotient, {upstream, 3, 1}, {factor, 3, 1}, 1, 3, false);
    for (int i = 0; i < 2; ++i) CHECK((product[i] == 0 && quotient[i] == 0));
    CHECK(product[2] == T(8));
    CHECK(quotient[2] == T(0.5));
  });
}

TEST_CASE_TEMPLATE("reduce: sums in double, and the maximum", T, float, double) {
  on_each_target([&](const std::string&) {
    const auto sum_of = HANDGRAD_ACTIVE(sum<T>);
    const auto add_columns = HANDGRAD_ACTIVE(add_columns<T>);
    const auto largest = HANDGRAD_ACTIVE(largest<T>);
    // H15: a running sum of floats would lose the ones.
    const std::vector<T> far = {T(1e8), T(1), T(-1e8), T(1)};
    CHECK(sum_of(far.data(), 4) == 2.0);
    double column = 0;
    add_columns(&column, far.data(), 4, 1, 1);
    CHECK(column == 2.0);

    for (const int64_t n : {0, 1, 7, 16, 17, 64, 100, 333}) {
      std::vector<T> x(static_cast<size_t>(n));
      double want = 0;
      for (size_t i = 0; i < x.size(); ++i)
        want += static_cast<double>(x[i] = static_cast<T>(static_cast<double>(i * i % 91) - 45.25));
      CHECK(sum_of(x.data(), n) == want);  // quarters: exact in any order
      CHECK(largest(x.data(), n) == (n == 0 ? static_cast<T>(-kInf) : *std::max_element(x.begin(), x.end())));
      for (size_t i = 0; i < x.size(); ++i) {
        const T good = x[i];
        x[i] = static_cast<T>(kNan);
        REQUIRE(std::isnan(largest(x.data(), n)));
        x[i] = good;
      }
    }
    for (const int64_t columns : {1, 7, 8, 9, 15, 16, 17, 40}) {
      std::vector<T> x(static_cast<size_t>(5 * 43));
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i);
      std::vector<double> sums(44, 0.5);
      add_columns(sums.data(), x.data(), 5, columns, 43);
      for (int64_t j = 0; j < 44; ++j) {
        const double whole = static_cast<double>(5 * j + 43 * (0 + 1 + 2 + 3 + 4));
        REQUIRE(sums[static_cast<size_t>(j)] == (j < columns ? 0.5 + whole : 0.5));
      }
    }
  });
}

}  // namespace
