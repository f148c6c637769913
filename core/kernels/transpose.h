// Transposes in registers: kernels that read [rows, columns] where [columns, rows] is stored.
#pragma once

#include "handgrad/core/kernels/vec.h"

namespace handgrad::kernels::HANDGRAD_TARGET {

// Square of as many registers as one has lanes. Interleaving row i with row i + half rotates the bits of an
// element's address (row, lane) by one place, so doing it log2(lanes) times exchanges row and lane.
template <class T>
HANDGRAD_INLINE void transpose_square(typename Native<T>::Type (&x)[Native<T>::kLanes]) {
  constexpr int64_t n = Native<T>::kLanes;
#pragma GCC unroll 4
  for (int64_t step = 1; step < n; step *= 2) {
    typename Native<T>::Type y[n];
#pragma GCC unroll 8
    for (int64_t i = 0; i < n / 2; ++i) {
      y[2 * i] = Native<T>::interleave_low(x[i], x[i + n / 2]);
      y[2 * i + 1] = Native<T>::interleave_high(x[i], x[i + n / 2]);
    }
#pragma GCC unroll 16
    for (int64_t i = 0; i < n; ++i) x[i] = y[i];
  }
}

// to[j, i] = from[i, j] for i < rows, j < columns, and 0 for i from there to the end of the last vector (of kLanes).
// `width`, the distance between rows of `to`, has room for that. Memory beyond from's elements is not read.
template <class T>
inline void transpose(const T* from, int64_t ld, int64_t rows, int64_t columns, T* to, int64_t width) {
  using N = Native<T>;
  constexpr int64_t n = N::kLanes;
  const int64_t whole = (rows + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  for (int64_t i = 0; i < whole; i += n) {
    for (int64_t j = 0; j < columns; j += n) {
      const int64_t wide = columns - j < n ? columns - j : n;
      const auto mask = N::first(wide);
      typename N::Type x[n];
      if (wide == n && i + n <= rows) {
#pragma GCC unroll 16
        for (int64_t r = 0; r < n; ++r) x[r] = N::load(from + (i + r) * ld + j);
      } else {
#pragma GCC unroll 16
        for (int64_t r = 0; r < n; ++r) {
          x[r] = i + r < rows ? N::load(from + (i + r) * ld + j, mask) : N::set(T(0));
        }
      }
      transpose_square<T>(x);
#pragma GCC unroll 16
      for (int64_t r = 0; r < n; ++r) {
        if (r < wide) N::store(to + (j + r) * width + i, x[r]);
      }
    }
  }
}

}  // namespace handgrad::kernels::HANDGRAD_TARGET
