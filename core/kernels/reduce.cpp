#include "handgrad/core/kernels/reduce.h"

#include "handgrad/core/kernels/sum.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

// As many columns at a time as 8 doubles, down all rows, so that the sums stay in registers.
void add_column(double* sums, const double* x, int64_t rows, int64_t ld, int64_t columns) {
  const Mask<double> lanes = first_lanes<double>(columns);
  Vec<double> total = load(sums, lanes);
  for (int64_t i = 0; i < rows; ++i) total = total + load(x + i * ld, lanes);
  store(sums, total, lanes);
}
void add_column(double* sums, const float* x, int64_t rows, int64_t ld, int64_t columns) {
  const Mask<float> lanes = first_lanes<float>(columns);
  const Mask<double> low = first_lanes<double>(columns);
  const Mask<double> high = first_lanes<double>(columns < 8 ? 0 : columns - 8);
  Wide total{load(sums, low), columns > 8 ? load(sums + 8, high) : set(0.0)};
  for (int64_t i = 0; i < rows; ++i) {
    const Wide row = widen(load(x + i * ld, lanes));
    total = {total.low + row.low, total.high + row.high};
  }
  store(sums, total.low, low);
  if (columns > 8) store(sums + 8, total.high, high);
}

}  // namespace

template <class T>
double sum(const T* x, int64_t n) {
  // Four sums take turns: one would wait for each addition to end before the next begins.
  Sum<T> s[4];
  int64_t i = 0;
  for (; i + 4 * kLanes<T> <= n; i += 4 * kLanes<T>) {
#pragma GCC unroll 4
    for (int64_t k = 0; k < 4; ++k) s[k].add(load(x + i + k * kLanes<T>));
  }
  each<T>(
      n - i, [&](int64_t j, auto lanes) __attribute__((always_inline)) { s[0].add(load(x + i + j, lanes)); });
  return (s[0].total() + s[1].total()) + (s[2].total() + s[3].total());
}

template <class T>
void add_columns(double* sums, const T* x, int64_t rows, int64_t columns, int64_t ld) {
  for (int64_t j = 0; j < columns; j += kLanes<T>) {
    add_column(sums + j, x + j, rows, ld, columns - j < kLanes<T> ? columns - j : kLanes<T>);
  }
}

template <class T>
T largest(const T* x, int64_t n) {
  const T infinity = static_cast<T>(__builtin_inf());
  const Vec<T> lowest = set(-infinity);
  Vec<T> top = lowest;
  Vec<T> spoiled = set(T(0));  // lanes that have met NaN
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> v = load(x + i, lanes);
        spoiled = select(equal(v, v), spoiled, v);
        top = max(top, select(lanes, v, lowest));
      });
  if (any(invert(equal(spoiled, spoiled)))) return static_cast<T>(__builtin_nan(""));
  return horizontal_max(top);
}

template double sum(const float*, int64_t);
template double sum(const double*, int64_t);
template void add_columns(double*, const float*, int64_t, int64_t, int64_t);
template void add_columns(double*, const double*, int64_t, int64_t, int64_t);
template float largest(const float*, int64_t);
template double largest(const double*, int64_t);

}  // namespace handgrad::kernels::HANDGRAD_TARGET
