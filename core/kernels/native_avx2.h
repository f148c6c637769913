// One 256-bit register with fused multiply-add: what vec.h needs and the compiler's vector extensions do not
// give.
#pragma once

#include <immintrin.h>

namespace handgrad::kernels::HANDGRAD_TARGET {

template <>
struct Native<float> {
  using Type = __m256;
  using Int = int32_t __attribute__((vector_size(32)));
  using Mask = Int;  // all bits of a lane are set, or none
  static constexpr int64_t kLanes = 8;

  HANDGRAD_INLINE static Type load(const float* p) { return _mm256_loadu_ps(p); }
  HANDGRAD_INLINE static Type load(const float* p, Mask m) {
    return _mm256_maskload_ps(p, reinterpret_cast<__m256i>(m));
  }
  HANDGRAD_INLINE static void store(float* p, Type x) { _mm256_storeu_ps(p, x); }
  HANDGRAD_INLINE static void store(float* p, Type x, Mask m) {
    _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(m), x);
  }
  HANDGRAD_INLINE static Type set(float x) { return _mm256_set1_ps(x); }
  HANDGRAD_INLINE static Type fma(Type a, Type b, Type c) { return _mm256_fmadd_ps(a, b, c); }
  HANDGRAD_INLINE static Type sqrt(Type x) { return _mm256_sqrt_ps(x); }

  HANDGRAD_INLINE static Mask less(Type a, Type b) { return a < b; }
  HANDGRAD_INLINE static Mask less_equal(Type a, Type b) { return a <= b; }
  HANDGRAD_INLINE static Mask equal(Type a, Type b) { return a == b; }
  HANDGRAD_INLINE static Mask first(int64_t n) {
    const int32_t count = static_cast<int32_t>(n > kLanes ? kLanes : n);
    return Int{0, 1, 2, 3, 4, 5, 6, 7} < count;
  }
  HANDGRAD_INLINE static Type select(Mask m, Type a, Type b) {
    return _mm256_blendv_ps(b, a, reinterpret_cast<__m256>(m));
  }
  HANDGRAD_INLINE static Mask both(Mask a, Mask b) { return a & b; }
  HANDGRAD_INLINE static Mask invert(Mask m) { return ~m; }
  HANDGRAD_INLINE static bool any(Mask m) { return _mm256_movemask_ps(reinterpret_cast<__m256>(m)) != 0; }
  HANDGRAD_INLINE static Type interleave_low(Type a, Type b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }
  HANDGRAD_INLINE static Type interleave_high(Type a, Type b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
};

template <>
struct Native<double> {
  using Type = __m256d;
  using Int = int64_t __attribute__((vector_size(32)));
  using Mask = Int;
  static constexpr int64_t kLanes = 4;

  HANDGRAD_INLINE static Type load(const double* p) { return _mm256_loadu_pd(p); }
  HANDGRAD_INLINE static Type load(const double* p, Mask m) {
    return _mm256_maskload_pd(p, reinterpret_cast<__m256i>(m));
  }
  HANDGRAD_INLINE static void store(double* p, Type x) { _mm256_storeu_pd(p, x); }
  HANDGRAD_INLINE static void store(double* p, Type x, Mask m) {
    _mm256_maskstore_pd(p, reinterpret_cast<__m256i>(m), x);
  }
  HANDGRAD_INLINE static Type set(double x) { return _mm256_set1_pd(x); }
  HANDGRAD_INLINE static Type fma(Type a, Type b, Type c) { return _mm256_fmadd_pd(a, b, c); }
  HANDGRAD_INLINE static Type sqrt(Type x) { return _mm256_sqrt_pd(x); }

  HANDGRAD_INLINE static Mask less(Type a, Type b) { return reinterpret_cast<Int>(a < b); }
  HANDGRAD_INLINE static Mask less_equal(Type a, Type b) { return reinterpret_cast<Int>(a <= b); }
  HANDGRAD_INLINE static Mask equal(Type a, Type b) { return reinterpret_cast<Int>(a == b); }
  HANDGRAD_INLINE static Mask first(int64_t n) { return reinterpret_cast<Int>(Int{0, 1, 2, 3} < n); }
  HANDGRAD_INLINE static Type select(Mask m, Type a, Type b) {
    return _mm256_blendv_pd(b, a, reinterpret_cast<__m256d>(m));
  }
  HANDGRAD_INLINE static Mask both(Mask a, Mask b) { return a & b; }
  HANDGRAD_INLINE static Mask invert(Mask m) { return ~m; }
  HANDGRAD_INLINE static bool any(Mask m) { return _mm256_movemask_pd(reinterpret_cast<__m256d>(m)) != 0; }
  HANDGRAD_INLINE static Type interleave_low(Type a, Type b) {
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  }
  HANDGRAD_INLINE static Type interleave_high(Type a, Type b) {
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
  }
};

HANDGRAD_INLINE __m256d low_half_as_double(__m256 x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
HANDGRAD_INLINE __m256d high_half_as_double(__m256 x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }

}  // namespace handgrad::kernels::HANDGRAD_TARGET
