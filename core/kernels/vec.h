// The logical vector that every kernel is written on: Vec<float> has 16 lanes and Vec<double> 8, on every
// instruction set, in as many registers as that takes. Reductions fold lanes in one order, so a kernel gives
// the same bits wherever fused multiply-add exists (AVX2, AVX-512, arm64; SSE2 rounds twice instead).
//
// This file and the kernels are compiled once per instruction set, in the namespace HANDGRAD_TARGET (see targets.h).
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HANDGRAD_INLINE __attribute__((always_inline)) inline

namespace handgrad::kernels::HANDGRAD_TARGET {

template <class T>
struct Native;  // one register: its type, lanes, loads, comparisons

}  // namespace handgrad::kernels::HANDGRAD_TARGET

#if defined(__AVX512F__)
#include "handgrad/core/kernels/native_avx512.h"
#elif defined(__AVX2__)
#include "handgrad/core/kernels/native_avx2.h"
#else
#include "handgrad/core/kernels/native_128.h"
#endif

namespace handgrad::kernels::HANDGRAD_TARGET {

template <class T>
inline constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(T));

template <class T>
inline constexpr int64_t kPieces = kLanes<T> / Native<T>::kLanes;

template <class T>
struct Vec {
  typename Native<T>::Type piece[kPieces<T>];
};

// One flag per lane: a comparison's result, or the first n lanes of a short row.
template <class T>
struct Mask {
  typename Native<T>::Mask piece[kPieces<T>];
};

// As many integer lanes as Vec<T> has, of T's size.
template <class T>
struct IntVec {
  typename Native<T>::Int piece[kPieces<T>];
};

// In place of a Mask: every lane; loads and stores are plain.
struct All {};

// ---- Memory

template <class T>
HANDGRAD_INLINE Vec<T> set(T x) {
  Vec<T> r;
  for (int64_t i = 0; i < kPieces<T>; ++i) r.piece[i] = Native<T>::set(x);
  return r;
}

template <class T>
HANDGRAD_INLINE Vec<T> load(const T* p, All = {}) {
  Vec<T> r;
  for (int64_t i = 0; i < kPieces<T>; ++i) r.piece[i] = Native<T>::load(p + i * Native<T>::kLanes);
  return r;
}
// Lanes outside the mask are 0 and their memory is not touched.
template <class T>
HANDGRAD_INLINE Vec<T> load(const T* p, Mask<T> m) {
  Vec<T> r;
  for (int64_t i = 0; i < kPieces<T>; ++i)
    r.piece[i] = Native<T>::load(p + i * Native<T>::kLanes, m.piece[i]);
  return r;
}

template <class T>
HANDGRAD_INLINE void store(T* p, Vec<T> x, All = {}) {
  for (int64_t i = 0; i < kPieces<T>; ++i) Native<T>::store(p + i * Native<T>::kLanes, x.piece[i]);
}
template <class T>
HANDGRAD_INLINE void store(T* p, Vec<T> x, Mask<T> m) {
  for (int64_t i = 0; i < kPieces<T>; ++i)
    Native<T>::store(p + i * Native<T>::kLanes, x.piece[i], m.piece[i]);
}

// The first n lanes, 0 <= n; every lane when n is kLanes or more.
template <class T>
HANDGRAD_INLINE Mask<T> first_lanes(int64_t n) {
  Mask<T> m;
  for (int64_t i = 0; i < kPieces<T>; ++i) {
    const int64_t left = n - i * Native<T>::kLanes;
    m.piece[i] = Native<T>::first(left < 0 ? 0 : left);
  }
  return m;
}

// Calls body(i, lanes) for i = 0, kLanes, 2 kLanes, ... below n, where lanes is All, or a Mask in a last
// short turn.
template <class T, class Body>
HANDGRAD_INLINE void each(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) body(i, All{});
  if (i < n) body(i, first_lanes<T>(n - i));
}

// ---- Arithmetic

template <class T>
HANDGRAD_INLINE Vec<T> operator+(Vec<T> a, Vec<T> b) {
  for (int64_t i = 0; i < kPieces<T>; ++i) a.piece[i] += b.piece[i];
  return a;
}
template <class T>
HANDGRAD_INLINE Vec<T> operator-(Vec<T> a, Vec<T> b) {
  for (int64_t i = 0; i < kPieces<T>; ++i) a.piece[i] -= b.piece[i];
  return a;
}
template <class T>
HANDGRAD_INLINE Vec<T> operator*(Vec<T> a, Vec<T> b) {
  for (int64_t i = 0; i < kPieces<T>; ++i) a.piece[i] *= b.piece[i];
  return a;
}
template <class T>
HANDGRAD_INLINE Vec<T> operator/(Vec<T> a, Vec<T> b) {
  for (int64_t i = 0; i < kPieces<T>; ++i) a.piece[i] /= b.piece[i];
  return a;
}
template <class T>
HANDGRAD_INLINE Vec<T> operator-(Vec<T> a) {
  for (int64_t i = 0; i < kPieces<T>; ++i) a.piece[i] = -a.piece[i];
  return a;
}

// a * b + c, rounded once where the machine can.
template <class T>
HANDGRAD_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) {
  for (int64_t i = 0; i < kPieces<T>; ++i) c.piece[i] = Native<T>::fma(a.piece[i], b.piece[i], c.piece[i]);
  return c;
}
template <class T>
HANDGRAD_INLINE Vec<T> sqrt(Vec<T> x) {
  for (int64_t i = 0; i < kPieces<T>; ++i) x.piece[i] = Native<T>::sqrt(x.piece[i]);
  return x;
}

// x - offset: what T cannot hold of the offset is subtracted in a second step. When x is near the offset the first
// step is exact, and the result has all the digits of T.
template <class T>
HANDGRAD_INLINE Vec<T> subtract(Vec<T> x, double offset) {
  const T high = static_cast<T>(offset);
  if constexpr (sizeof(T) == sizeof(double)) return x - set(high);
  return (x - set(high)) - set(static_cast<T>(offset - static_cast<double>(high)));
}

// ---- Comparison. One with NaN is false; b != b, the test for NaN, is invert(equal(b, b)).

template <class T>
HANDGRAD_INLINE Mask<T> less(Vec<T> a, Vec<T> b) {
  Mask<T> m;
  for (int64_t i = 0; i < kPieces<T>; ++i) m.piece[i] = Native<T>::less(a.piece[i], b.piece[i]);
  return m;
}
template <class T>
HANDGRAD_INLINE Mask<T> less_equal(Vec<T> a, Vec<T> b) {
  Mask<T> m;
  for (int64_t i = 0; i < kPieces<T>; ++i) m.piece[i] = Native<T>::less_equal(a.piece[i], b.piece[i]);
  return m;
}
template <class T>
HANDGRAD_INLINE Mask<T> equal(Vec<T> a, Vec<T> b) {
  Mask<T> m;
  for (int64_t i = 0; i < kPieces<T>; ++i) m.piece[i] = Native<T>::equal(a.piece[i], b.piece[i]);
  return m;
}
template <class T>
HANDGRAD_INLINE Mask<T> both(Mask<T> a, Mask<T> b) {
  for (int64_t i = 0; i < kPieces<T>; ++i) a.piece[i] = Native<T>::both(a.piece[i], b.piece[i]);
  return a;
}
template <class T>
HANDGRAD_INLINE Mask<T> invert(Mask<T> m) {
  for (int64_t i = 0; i < kPieces<T>; ++i) m.piece[i] = Native<T>::invert(m.piece[i]);
  return m;
}
template <class T>
HANDGRAD_INLINE bool any(Mask<T> m) {
  bool found = false;
  for (int64_t i = 0; i < kPieces<T>; ++i) found |= Native<T>::any(m.piece[i]);
  return found;
}

// m ? a : b in each lane.
template <class T>
HANDGRAD_INLINE Vec<T> select(Mask<T> m, Vec<T> a, Vec<T> b) {
  for (int64_t i = 0; i < kPieces<T>; ++i) {
    a.piece[i] = Native<T>::select(m.piece[i], a.piece[i], b.piece[i]);
  }
  return a;
}
template <class T>
HANDGRAD_INLINE Vec<T> select(All, Vec<T> a, Vec<T>) {
  return a;
}

// a < b ? a : b and a > b ? a : b; so b when either is NaN.
template <class T>
HANDGRAD_INLINE Vec<T> min(Vec<T> a, Vec<T> b) {
  return select(less(a, b), a, b);
}
template <class T>
HANDGRAD_INLINE Vec<T> max(Vec<T> a, Vec<T> b) {
  return select(less(b, a), a, b);
}

// ---- Bits and whole numbers

template <class T>
HANDGRAD_INLINE IntVec<T> bits(Vec<T> x) {
  IntVec<T> r;
  for (int64_t i = 0; i < kPieces<T>; ++i) r.piece[i] = reinterpret_cast<typename Native<T>::Int>(x.piece[i]);
  return r;
}
template <class T>
HANDGRAD_INLINE Vec<T> from_bits(IntVec<T> x) {
  Vec<T> r;
  for (int64_t i = 0; i < kPieces<T>; ++i)
    r.piece[i] = reinterpret_cast<typename Native<T>::Type>(x.piece[i]);
  return r;
}

// |x|, and x with the sign bit of y: bitwise, so NaN and -0 are kept.
template <class T>
HANDGRAD_INLINE Vec<T> abs(Vec<T> x) {
  IntVec<T> b = bits(x);
  for (int64_t i = 0; i < kPieces<T>; ++i) b.piece[i] &= ~bits(set(T(-0.0))).piece[i];
  return from_bits<T>(b);
}
template <class T>
HANDGRAD_INLINE Vec<T> copy_sign(Vec<T> x, Vec<T> y) {
  IntVec<T> b = bits(x);
  const IntVec<T> s = bits(y);
  const IntVec<T> sign = bits(set(T(-0.0)));
  for (int64_t i = 0; i < kPieces<T>; ++i) {
    b.piece[i] = (b.piece[i] & ~sign.piece[i]) | (s.piece[i] & sign.piece[i]);
  }
  return from_bits<T>(b);
}

// The nearest whole number (ties to even) for |x| below 2^22 (float) or 2^51 (double).
template <class T>
HANDGRAD_INLINE Vec<T> round(Vec<T> x) {
  const Vec<T> magic = set(sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0));  // 1.5 * 2^23, 1.5 * 2^52
  return (x + magic) - magic;
}

// 2^n for whole n in the range of normal exponents.
template <class T>
HANDGRAD_INLINE Vec<T> power_of_two(Vec<T> n) {
  constexpr int kFraction = sizeof(T) == 4 ? 23 : 52;
  constexpr int kBias = sizeof(T) == 4 ? 127 : 1023;
  // Adding 1.5 * 2^fraction leaves n + bias in the low bits of the number; shifted up they are its exponent.
  const Vec<T> magic = set(sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0));
  IntVec<T> b = bits(n + (magic + set(T(kBias))));
  for (int64_t i = 0; i < kPieces<T>; ++i) b.piece[i] = b.piece[i] << kFraction;
  return from_bits<T>(b);
}

// ---- Reductions, in one order on every instruction set

// Folds the upper half of one register's lanes onto the lower half until one is left.
template <int64_t Lanes, class V, class F>
HANDGRAD_INLINE auto fold_lanes(V x, const F& f) {
  if constexpr (Lanes == 16) {
    return fold_lanes<8>(f(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7),
                           __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15)),
                         f);
  } else if constexpr (Lanes == 8) {
    return fold_lanes<4>(
        f(__builtin_shufflevector(x, x, 0, 1, 2, 3), __builtin_shufflevector(x, x, 4, 5, 6, 7)), f);
  } else if constexpr (Lanes == 4 && sizeof(V) == 32) {
    return fold_lanes<2>(f(__builtin_shufflevector(x, x, 0, 1), __builtin_shufflevector(x, x, 2, 3)), f);
  } else if constexpr (Lanes == 4) {
    const auto pair = f(x, __builtin_shufflevector(x, x, 2, 3, 2, 3));
    return f(pair, __builtin_shufflevector(pair, pair, 1, 1, 1, 1))[0];
  } else {
    return f(x, __builtin_shufflevector(x, x, 1, 1))[0];
  }
}

// 16 lanes to 8 to 4 to 2 to 1, lane i with lane i + half.
template <class T, class F>
HANDGRAD_INLINE T fold(Vec<T> x, const F& f) {
  for (int64_t half = kPieces<T> / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) x.piece[i] = f(x.piece[i], x.piece[i + half]);
  }
  return fold_lanes<Native<T>::kLanes>(x.piece[0], f);
}

template <class T>
HANDGRAD_INLINE T horizontal_sum(Vec<T> x) {
  return fold(
      x, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
}

// The largest lane; what a NaN lane gives is not defined.
template <class T>
HANDGRAD_INLINE T horizontal_max(Vec<T> x) {
  return fold(
      x, [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; });
}

// ---- float and double

// Sixteen lanes in double: what sums over rows accumulate in.
struct Wide {
  Vec<double> low;   // lanes 0 to 7
  Vec<double> high;  // lanes 8 to 15
};

HANDGRAD_INLINE Wide widen(Vec<float> x) {
  constexpr int64_t kHalf = kPieces<double>;
  Wide r;
  for (int64_t i = 0; i < kPieces<float>; ++i) {
    const int64_t at = 2 * i;
    (at < kHalf ? r.low : r.high).piece[at % kHalf] = low_half_as_double(x.piece[i]);
    (at + 1 < kHalf ? r.low : r.high).piece[(at + 1) % kHalf] = high_half_as_double(x.piece[i]);
  }
  return r;
}

}  // namespace handgrad::kernels::HANDGRAD_TARGET
