#include "handgrad/core/kernels/peak.h"

#include "handgrad/core/kernels/vec.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

// Chains that do not wait for each other: two units of four cycles each need at least 8 registers, and 16 hold them
// with the factors on every instruction set.
template <class T>
inline constexpr int64_t kChains = kPieces<T> >= 12 ? 1 : 12 / kPieces<T>;

}  // namespace

template <class T>
double multiply_adds(int64_t turns, T* sink) {
  Vec<T> chains[kChains<T>];
  for (int64_t i = 0; i < kChains<T>; ++i) chains[i] = set(T(i));
  const Vec<T> factor = set(T(0.999)), addend = set(T(0.001));
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (int64_t i = 0; i < kChains<T>; ++i) chains[i] = fma(chains[i], factor, addend);
  }
  Vec<T> sum = chains[0];
  for (int64_t i = 1; i < kChains<T>; ++i) sum = sum + chains[i];
  *sink = horizontal_sum(sum);
  return 2.0 * static_cast<double>(turns) * static_cast<double>(kChains<T> * kLanes<T>);
}
template double multiply_adds(int64_t, float*);
template double multiply_adds(int64_t, double*);

}  // namespace handgrad::kernels::HANDGRAD_TARGET
