// Deterministic workers: work is cut into chunks that depend on the problem, never on the number of threads, and
// every chunk is computed by one thread. So the bits are the same for any number of threads.
#pragma once

#include <cstdint>

namespace handgrad {

/// Threads that work in parallel_for, including the caller. Default: available_cores().
int thread_count();
/// At least 1. Takes effect at the next parallel_for.
void set_thread_count(int threads);
/// Cores that the process may use: its affinity mask, and the CPU quota of its control group.
int available_cores();

namespace internal {
void run_chunks(std::int64_t chunks, void (*body)(void*, std::int64_t), void* context);
}  // namespace internal

/// Calls body(i) once for every i in 0..chunks-1, on whichever thread claims it. Returns when all are done. Bodies
/// must not throw, must not touch reference counts (they use raw pointers), and must not depend on their order.
/// Inside another parallel_for, or when the workers serve another thread, the caller does all of them itself.
template <class Body>
void parallel_for(std::int64_t chunks, const Body& body) {
  if (chunks == 1) return body(std::int64_t{0});
  internal::run_chunks(
      chunks, [](void* context, std::int64_t i) { (*static_cast<const Body*>(context))(i); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

/// How many elements make a chunk when one element costs about `nanoseconds`: enough that a chunk lasts about 20 us,
/// below which handing it to another thread costs more than it saves.
constexpr std::int64_t grain_for(double nanoseconds) {
  const double elements = 20000.0 / nanoseconds;
  return elements < 1 ? 1 : static_cast<std::int64_t>(elements);
}

/// Cuts 0..count-1 into chunks of `grain` and calls body(begin, end) for each.
template <class Body>
void parallel_ranges(std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  const std::int64_t chunks = (count + grain - 1) / grain;
  parallel_for(chunks, [&](std::int64_t i) {
    const std::int64_t begin = i * grain;
    body(begin, begin + grain < count ? begin + grain : count);
  });
}

/// Sets the processor to treat numbers below the smallest normal one as zero, for the calling thread, while it
/// lives; workers follow the thread they work for. Adam's moments decay into such numbers, which are ten times slower.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  std::uint64_t before_;
};

}  // namespace handgrad
