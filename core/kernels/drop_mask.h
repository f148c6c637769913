// The mask of an operation with dropout.
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

#ifndef HANDGRAD_TARGET
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
