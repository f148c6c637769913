// One 128-bit register: SSE2, NEON, or whatever the compiler's vector extensions turn into elsewhere.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace handgrad::kernels::HANDGRAD_TARGET {

// Parts that do not depend on the type: masks are integers with all bits of a lane set, or none.
template <class T, class IntLane>
struct Native128 {
  static constexpr int64_t kLanes = 16 / static_cast<int64_t>(sizeof(T));
  typedef T Type __attribute__((vector_size(16)));
  typedef IntLane Int __attribute__((vector_size(16)));
  using Mask = Int;

  HANDGRAD_INLINE static Type load(const T* p) {
    Type x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  HANDGRAD_INLINE static void store(T* p, Type x) { __builtin_memcpy(p, &x, sizeof x); }
  // A lane outside the mask may lie on a page that does not exist, so it is neither read nor written. Kept
  // out of line: nothing here is fast, and four copies in every loop would only be long.
  __attribute__((noinline)) static Type load(const T* p, Mask m) {
    Type x{};
    for (int64_t i = 0; i < kLanes; ++i) {
      if (m[i] != 0) x[i] = p[i];
    }
    return x;
  }
  __attribute__((noinline)) static void store(T* p, Type x, Mask m) {
    for (int64_t i = 0; i < kLanes; ++i) {
      if (m[i] != 0) p[i] = x[i];
    }
  }
  HANDGRAD_INLINE static Type set(T x) { return x - Type{}; }  // -0 stays -0

  HANDGRAD_INLINE static Mask less(Type a, Type b) { return reinterpret_cast<Int>(a < b); }
  HANDGRAD_INLINE static Mask less_equal(Type a, Type b) { return reinterpret_cast<Int>(a <= b); }
  HANDGRAD_INLINE static Mask equal(Type a, Type b) { return reinterpret_cast<Int>(a == b); }
  HANDGRAD_INLINE static Mask first(int64_t n) {
    const IntLane count = static_cast<IntLane>(n > kLanes ? kLanes : n);
    Int lane{};
    for (int64_t i = 0; i < kLanes; ++i) lane[i] = static_cast<IntLane>(i);
    return lane < (Int{} + count);
  }
  HANDGRAD_INLINE static Type select(Mask m, Type a, Type b) {
    return reinterpret_cast<Type>((m & reinterpret_cast<Int>(a)) | (~m & reinterpret_cast<Int>(b)));
  }
  HANDGRAD_INLINE static Mask both(Mask a, Mask b) { return a & b; }
  HANDGRAD_INLINE static Mask invert(Mask m) { return ~m; }
  HANDGRAD_INLINE static bool any(Mask m) {
    IntLane bits = 0;
    for (int64_t i = 0; i < kLanes; ++i) bits |= m[i];
    return bits != 0;
  }
};

template <>
struct Native<float> : Native128<float, int32_t> {
#if defined(__SSE2__)
  HANDGRAD_INLINE static Type fma(Type a, Type b, Type c) {
    return a * b + c;
  }  // SSE2 has none: rounds twice
  HANDGRAD_INLINE static Type sqrt(Type x) { return _mm_sqrt_ps(x); }
#elif defined(__aarch64__)
  HANDGRAD_INLINE static Type fma(Type a, Type b, Type c) { return vfmaq_f32(c, a, b); }
  HANDGRAD_INLINE static Type sqrt(Type x) { return vsqrtq_f32(x); }
#else
  HANDGRAD_INLINE static Type fma(Type a, Type b, Type c) { return a * b + c; }
  HANDGRAD_INLINE static Type sqrt(Type x) {
    for (int64_t i = 0; i < kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
    return x;
  }
#endif
  HANDGRAD_INLINE static Type interleave_low(Type a, Type b) {
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  }
  HANDGRAD_INLINE static Type interleave_high(Type a, Type b) {
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
  }
};

template <>
struct Native<double> : Native128<double, int64_t> {
#if defined(__SSE2__)
  HANDGRAD_INLINE static Type fma(Type a, Type b, Type c) { return a * b + c; }
  HANDGRAD_INLINE static Type sqrt(Type x) { return _mm_sqrt_pd(x); }
#elif defined(__aarch64__)
  HANDGRAD_INLINE static Type fma(Type a, Type b, Type c) { return vfmaq_f64(c, a, b); }
  HANDGRAD_INLINE static Type sqrt(Type x) { return vsqrtq_f64(x); }
#else
  HANDGRAD_INLINE static Type fma(Type a, Type b, Type c) { return a * b + c; }
  HANDGRAD_INLINE static Type sqrt(Type x) {
    for (int64_t i = 0; i < kLanes; ++i) x[i] = __builtin_sqrt(x[i]);
    return x;
  }
#endif
  HANDGRAD_INLINE static Type interleave_low(Type a, Type b) { return __builtin_shufflevector(a, b, 0, 2); }
  HANDGRAD_INLINE static Type interleave_high(Type a, Type b) { return __builtin_shufflevector(a, b, 1, 3); }
};

using Float128 = Native<float>::Type;
using Double128 = Native<double>::Type;

HANDGRAD_INLINE Double128 low_half_as_double(Float128 x) {
  return Double128{static_cast<double>(x[0]), static_cast<double>(x[1])};
}
HANDGRAD_INLINE Double128 high_half_as_double(Float128 x) {
  return Double128{static_cast<double>(x[2]), static_cast<double>(x[3])};
}

}  // namespace handgrad::kernels::HANDGRAD_TARGET
