// The mask of an operation with dropout, and the random numbers that decide it.
#pragma once

#include <stdint.h>

namespace handgrad::kernels {

/// The key of the random numbers (core/random.h, RandomKey), and what they decide.
struct DropMask {
  uint32_t key[2];
  uint32_t step;
  uint32_t micro_batch;
  uint32_t threshold;  ///< an element stays if its 32 random bits are at least this: rate * 2^32
  double factor;       ///< of those that stay: 1 / (1 - rate)
};

}  // namespace handgrad::kernels

#ifdef HANDGRAD_TARGET

#include "handgrad/core/kernels/vec.h"

// Philox4x32-10 in vectors: the numbers of core/random.h, eight blocks of four at a time.
namespace handgrad::kernels::HANDGRAD_TARGET {

// A register of 64-bit lanes. Each holds a 32-bit word in its lower half; the upper half is ignored.
typedef uint64_t PhiloxWords __attribute__((vector_size(sizeof(Native<double>::Type))));

HANDGRAD_INLINE PhiloxWords multiply_low_halves(PhiloxWords a, uint64_t b) {
#if defined(__AVX512F__)
  return reinterpret_cast<PhiloxWords>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), _mm512_set1_epi64(static_cast<int64_t>(b))));
#elif defined(__AVX2__)
  return reinterpret_cast<PhiloxWords>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), _mm256_set1_epi64x(static_cast<int64_t>(b))));
#elif defined(__SSE2__)
  return reinterpret_cast<PhiloxWords>(
      _mm_mul_epu32(reinterpret_cast<__m128i>(a), _mm_set1_epi64x(static_cast<int64_t>(b))));
#else
  return (a & 0xffffffff) * b;
#endif
}

// How many numbers random_bits may write past `count`.
inline constexpr int64_t kPhiloxSlack = 32;

// The 32-bit numbers of positions 4 * block, 4 * block + 1, ... : at least `count` of them, in whole vectors.
inline void random_bits(uint32_t* to, int64_t count, uint64_t block, const DropMask& mask) {
  using N = Native<double>;
  constexpr int64_t n = N::kLanes;  // blocks in a register
  PhiloxWords lane;
  for (int64_t i = 0; i < n; ++i) lane[i] = static_cast<uint64_t>(i);
  for (int64_t done = 0; done < count; done += 4 * n, block += static_cast<uint64_t>(n)) {
    PhiloxWords c0 = lane + block, c1 = c0 >> 32;
    PhiloxWords c2 = PhiloxWords{} + mask.step, c3 = PhiloxWords{} + mask.micro_batch;
    uint64_t k0 = mask.key[0], k1 = mask.key[1];
    for (int round = 0; round < 10; ++round) {
      const PhiloxWords p0 = multiply_low_halves(c0, 0xD2511F53);
      const PhiloxWords p1 = multiply_low_halves(c2, 0xCD9E8D57);
      c0 = (p1 >> 32) ^ c1 ^ k0;
      c1 = p1;
      c2 = (p0 >> 32) ^ c3 ^ k1;
      c3 = p0;
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    const auto first = reinterpret_cast<N::Type>((c0 & 0xffffffff) | (c1 << 32));
    const auto second = reinterpret_cast<N::Type>((c2 & 0xffffffff) | (c3 << 32));
    const N::Type low = N::interleave_low(first, second), high = N::interleave_high(first, second);
    __builtin_memcpy(to + done, &low, sizeof low);
    __builtin_memcpy(to + done + 2 * n, &high, sizeof high);
  }
}

}  // namespace handgrad::kernels::HANDGRAD_TARGET

#else

#include <algorithm>

#include "handgrad/core/random.h"

namespace handgrad {

/// 0 <= rate < 1. An element is dropped with probability rate, rounded to a multiple of 2^-32.
inline kernels::DropMask drop_mask(const RandomKey& key, double rate) {
  return {
      .key = {key.key[0], key.key[1]},
      .step = key.step,
      .micro_batch = key.micro_batch,
      .threshold = static_cast<std::uint32_t>(std::min(rate * 0x1p32 + 0.5, 0x1p32 - 1)),
      .factor = 1 / (1 - rate),
  };
}

}  // namespace handgrad

#endif
