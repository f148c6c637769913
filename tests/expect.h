// What the tests of operations share: numbers to feed them, and comparisons that say what differed.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "handgrad/core/error.h"
#include "handgrad/core/kernels/targets.h"
#include "handgrad/core/random.h"
#include "handgrad/core/tensor.h"

namespace handgrad::expect {

/// Every number within 1e-6 + 1e-5 * |expected|, unless told otherwise; NaN where NaN is expected.
inline void near(const Array& actual, const std::vector<double>& expected, double absolute = 1e-6,
                 double relative = 1e-5) {
  const std::vector<double> values = actual.values();
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    INFO("element ", i, ": ", values[i], ", expected ", expected[i]);
    CHECK((values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i])) ||
           std::fabs(values[i] - expected[i]) <= absolute + relative * std::fabs(expected[i])));
  }
}
inline void near(const Tensor& actual, const std::vector<double>& expected, double absolute = 1e-6,
                 double relative = 1e-5) {
  near(actual.array(), expected, absolute, relative);
}

/// Exactly these numbers.
inline void exactly(const Array& actual, const std::vector<double>& expected) {
  near(actual, expected, 0, 0);
}
inline void exactly(const Tensor& actual, const std::vector<double>& expected) {
  exactly(actual.array(), expected);
}

inline bool same_bits(const Array& a, const Array& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  bool same = true;
  dispatch(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    same = a.numel() == 0 || std::memcmp(a.data<T>(), b.data<T>(), a.bytes()) == 0;
  });
  return same;
}

/// Float64 numbers that differ by at most `ulps` units in the last place of the largest of them.
inline void within_ulps(const Array& a, const Array& b, double ulps = 4) {
  REQUIRE(a.shape() == b.shape());
  REQUIRE(a.dtype() == DType::float64);
  const std::vector<double> va = a.values(), vb = b.values();
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < va.size(); ++i) {
    largest = std::max(largest, std::fabs(vb[i]));
    worst = std::fabs(va[i] - vb[i]) <= worst ? worst : std::fabs(va[i] - vb[i]);  // NaN counts as worse
  }
  CHECK(worst <= ulps * 0x1p-52 * largest);
}

/// The text of the error of type E that `body` throws.
template <class E, class Body>
std::string message(const Body& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

/// Calls body(name) under each instruction set that this build and this CPU have.
template <class Body>
void on_each_target(const Body& body) {
  const std::string before = kernels::target_name();
  for (const char* name : {"baseline", "avx2", "avx512"}) {
    if (!kernels::set_target(name)) continue;
    CAPTURE(name);
    body(std::string(name));
  }
  kernels::set_target(before.c_str());
}

/// Random numbers in row-major order.
inline Array uniform_array(const Shape& shape, double low, double high, Random& random,
                           DType dtype = DType::float32) {
  std::vector<double> numbers(static_cast<std::size_t>(shape.numel()));
  for (double& number : numbers) number = random.uniform(low, high);
  return Array::of(numbers, shape, dtype);
}
inline Array normal_array(const Shape& shape, double mean, double std, Random& random,
                          DType dtype = DType::float32) {
  std::vector<double> numbers(static_cast<std::size_t>(shape.numel()));
  for (double& number : numbers) number = mean + std * random.normal();
  return Array::of(numbers, shape, dtype);
}
/// Normal random numbers, the same for the same seed.
inline Array normal(const Shape& shape, std::uint64_t seed, DType dtype = DType::float32, double mean = 0,
                    double std = 1) {
  Random random(seed);
  return normal_array(shape, mean, std, random, dtype);
}
inline Tensor leaf(Array numbers) { return Tensor::constant(std::move(numbers)).requires_grad(); }
inline Tensor leaf(std::initializer_list<double> values, DType dtype = DType::float32) {
  return Tensor::of(values, dtype).requires_grad();
}

}  // namespace handgrad::expect
