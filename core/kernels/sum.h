// Sums in double over vectors of either type, in lanes and in memory.
#pragma once

#include "handgrad/core/kernels/vec.h"

namespace handgrad::kernels::HANDGRAD_TARGET {

// The sum of many vectors' lanes.
template <class T>
struct Sum;

template <>
struct Sum<float> {
  Wide lanes{set(0.0), set(0.0)};

  HANDGRAD_INLINE void add(Vec<float> x) {
    const Wide w = widen(x);
    lanes = {lanes.low + w.low, lanes.high + w.high};
  }
  // The product of two floats is exact in double.
  HANDGRAD_INLINE void add_product(Vec<float> a, Vec<float> b) {
    const Wide wa = widen(a), wb = widen(b);
    lanes = {fma(wa.low, wb.low, lanes.low), fma(wa.high, wb.high, lanes.high)};
  }
  HANDGRAD_INLINE double total() const { return horizontal_sum(lanes.low + lanes.high); }
};

template <>
struct Sum<double> {
  Vec<double> lanes{set(0.0)};

  HANDGRAD_INLINE void add(Vec<double> x) { lanes = lanes + x; }
  HANDGRAD_INLINE void add_product(Vec<double> a, Vec<double> b) { lanes = fma(a, b, lanes); }
  HANDGRAD_INLINE double total() const { return horizontal_sum(lanes); }
};

// Adds a vector, or the product of two, to as many doubles in memory. All lanes are added, so a row of such sums
// has room for whole vectors, and the lanes behind a short row hold 0.
HANDGRAD_INLINE void add_to(double* sums, Vec<double> x) { store(sums, load(sums) + x); }
HANDGRAD_INLINE void add_to(double* sums, Vec<float> x) {
  const Wide w = widen(x);
  add_to(sums, w.low);
  add_to(sums + kLanes<double>, w.high);
}
HANDGRAD_INLINE void add_product_to(double* sums, Vec<double> a, Vec<double> b) {
  store(sums, fma(a, b, load(sums)));
}
HANDGRAD_INLINE void add_product_to(double* sums, Vec<float> a, Vec<float> b) {
  const Wide wa = widen(a), wb = widen(b);
  add_product_to(sums, wa.low, wb.low);
  add_product_to(sums + kLanes<double>, wa.high, wb.high);
}

}  // namespace handgrad::kernels::HANDGRAD_TARGET
