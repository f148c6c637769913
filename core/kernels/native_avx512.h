// One 512-bit register: what vec.h needs and the compiler's vector extensions do not give.
//
// The maskz forms with every bit set are the plain instructions; g++ 12 warns of the plain intrinsics' own
// headers.
#pragma once

#include <immintrin.h>

namespace handgrad::kernels::HANDGRAD_TARGET {

template <>
struct Native<float> {
  using Type = __m512;
  using Int = int32_t __attribute__((vector_size(64)));
  using Mask = __mmask16;
  static constexpr int64_t kLanes = 16;

  HANDGRAD_INLINE static Type load(const float* p) { return _mm512_loadu_ps(p); }
  HANDGRAD_INLINE static Type load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  HANDGRAD_INLINE static void store(float* p, Type x) { _mm512_storeu_ps(p, x); }
  HANDGRAD_INLINE static void store(float* p, Type x, Mask m) { _mm512_mask_storeu_ps(p, m, x); }
  HANDGRAD_INLINE static Type set(float x) { return _mm512_set1_ps(x); }
  HANDGRAD_INLINE static Type fma(Type a, Type b, Type c) { return _mm512_fmadd_ps(a, b, c); }
  HANDGRAD_INLINE static Type sqrt(Type x) { return _mm512_maskz_sqrt_ps(0xffff, x); }

  HANDGRAD_INLINE static Mask less(Type a, Type b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  HANDGRAD_INLINE static Mask less_equal(Type a, Type b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  HANDGRAD_INLINE static Mask equal(Type a, Type b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  HANDGRAD_INLINE static Mask first(int64_t n) {
    return n >= kLanes ? Mask(0xffff) : static_cast<Mask>((1u << n) - 1u);
  }
  HANDGRAD_INLINE static Type select(Mask m, Type a, Type b) { return _mm512_mask_blend_ps(m, b, a); }
  HANDGRAD_INLINE static Mask both(Mask a, Mask b) { return static_cast<Mask>(a & b); }
  HANDGRAD_INLINE static Mask invert(Mask m) { return static_cast<Mask>(~m); }
  HANDGRAD_INLINE static bool any(Mask m) { return m != 0; }
  HANDGRAD_INLINE static Type interleave_low(Type a, Type b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  HANDGRAD_INLINE static Type interleave_high(Type a, Type b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
};

template <>
struct Native<double> {
  using Type = __m512d;
  using Int = int64_t __attribute__((vector_size(64)));
  using Mask = __mmask8;
  static constexpr int64_t kLanes = 8;

  HANDGRAD_INLINE static Type load(const double* p) { return _mm512_loadu_pd(p); }
  HANDGRAD_INLINE static Type load(const double* p, Mask m) { return _mm512_maskz_loadu_pd(m, p); }
  HANDGRAD_INLINE static void store(double* p, Type x) { _mm512_storeu_pd(p, x); }
  HANDGRAD_INLINE static void store(double* p, Type x, Mask m) { _mm512_mask_storeu_pd(p, m, x); }
  HANDGRAD_INLINE static Type set(double x) { return _mm512_set1_pd(x); }
  HANDGRAD_INLINE static Type fma(Type a, Type b, Type c) { return _mm512_fmadd_pd(a, b, c); }
  HANDGRAD_INLINE static Type sqrt(Type x) { return _mm512_maskz_sqrt_pd(0xff, x); }

  HANDGRAD_INLINE static Mask less(Type a, Type b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
  HANDGRAD_INLINE static Mask less_equal(Type a, Type b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
  HANDGRAD_INLINE static Mask equal(Type a, Type b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
  HANDGRAD_INLINE static Mask first(int64_t n) {
    return n >= kLanes ? Mask(0xff) : static_cast<Mask>((1u << n) - 1u);
  }
  HANDGRAD_INLINE static Type select(Mask m, Type a, Type b) { return _mm512_mask_blend_pd(m, b, a); }
  HANDGRAD_INLINE static Mask both(Mask a, Mask b) { return static_cast<Mask>(a & b); }
  HANDGRAD_INLINE static Mask invert(Mask m) { return static_cast<Mask>(~m); }
  HANDGRAD_INLINE static bool any(Mask m) { return m != 0; }
  HANDGRAD_INLINE static Type interleave_low(Type a, Type b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }
  HANDGRAD_INLINE static Type interleave_high(Type a, Type b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
};

HANDGRAD_INLINE __m512d low_half_as_double(__m512 x) {
  return _mm512_maskz_cvtps_pd(0xff, __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7));
}
HANDGRAD_INLINE __m512d high_half_as_double(__m512 x) {
  return _mm512_maskz_cvtps_pd(0xff, __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15));
}

}  // namespace handgrad::kernels::HANDGRAD_TARGET
