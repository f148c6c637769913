// Random numbers that depend on nothing but their address: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel
// random numbers: as easy as 1, 2, 3", 2011). A number has a key (seed and stream) and a counter (where and when it
// is used), so any thread can compute any of them, and a resumed run continues with the same ones.
#pragma once

#include <array>
#include <cstdint>

#include "handgrad/core/tensor.h"

namespace handgrad {

/// Ten rounds of Philox4x32 for one counter and key: four numbers of 32 random bits.
std::array<std::uint32_t, 4> philox4x32(const std::array<std::uint32_t, 4>& counter,
                                        const std::array<std::uint32_t, 2>& key);

/// The address of the random numbers of one operation in one forward pass.
struct RandomKey {
  std::array<std::uint32_t, 2> key;  ///< of seed, stream and rank
  /// @{ As in RandomContext.
  std::uint32_t step, micro_batch;
  /// @}

  /// Four numbers of 32 bits: those of positions 4 * block .. 4 * block + 3.
  std::array<std::uint32_t, 4> block(std::uint64_t block) const {
    return philox4x32(
        {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), step, micro_batch}, key);
  }
};

/// A key from its parts; equal parts give equal keys, on every platform.
RandomKey random_key(std::uint64_t seed, std::uint64_t stream, std::uint32_t step = 0,
                     std::uint32_t micro_batch = 0, std::uint32_t rank = 0);

/// What keys the random operations of the calling thread, besides their module path. A trainer sets it
/// before each forward pass; setting it starts the counts of calls again.
struct RandomContext {
  std::uint64_t seed = 0;  ///< of the run
  /// @{ The update, the micro-batch in it, the process.
  std::uint32_t step = 0, micro_batch = 0, rank = 0;
  /// @}
};
/// Sets the calling thread's context and restarts its counts of calls.
void set_random_context(const RandomContext& context);
const RandomContext& random_context();  ///< of the calling thread

/// The key of the next random operation: by the context, the current module path, and how many random operations
/// ran under that path since the context was set.
RandomKey next_random_key();

/// A key as an array that a node can save, and back.
Array to_array(const RandomKey& key);
RandomKey random_key_of(const Array& array);  ///< what to_array made

/// A sequence of random numbers, for initialization, sampling and tests.
class Random {
 public:
  /// The same numbers for the same seed and stream; another stream has other numbers.
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : key_(random_key(seed, stream)) {}

  std::uint32_t bits();  ///< the next 32 random bits
  double uniform();      ///< in [0, 1), a multiple of 2^-53
  double uniform(double low, double high) { return low + (high - low) * uniform(); }  ///< in [low, high)
  double normal();                       ///< mean 0, variance 1 (Box and Muller)
  std::uint64_t below(std::uint64_t n);  ///< 0..n-1, each equally likely; n > 0

  /// Position in the sequence, to save and to restore.
  std::uint64_t position() const { return position_; }
  void set_position(std::uint64_t position);  ///< the next number is the one at this place

 private:
  RandomKey key_;
  std::uint64_t position_ = 0;  // of the next 32 bits
  std::array<std::uint32_t, 4> block_{};
};

/// Own natural logarithm (x > 0, normal), within 5e-16 of its size, and cosine of 2 * pi * turns (0 <= turns < 1), within
/// 4e-16: the platform's functions differ between CPUs, and initial weights would differ with them.
double portable_log(double x);
double portable_cos_turns(double turns);  ///< cosine of 2 pi turns

}  // namespace handgrad
