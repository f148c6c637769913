// The mask of an operation with dropout, from its key.
#pragma once

#include <algorithm>
#include <cstdint>

#include "handgrad/core/kernels/dropout_rows.h"
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
