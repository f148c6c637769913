#include "handgrad/core/memory.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

#include "handgrad/core/error.h"

// Under AddressSanitizer blocks go straight to the system, so that a use after release is seen.
#if defined(__SANITIZE_ADDRESS__)
#define HANDGRAD_POOL_BYPASSED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HANDGRAD_POOL_BYPASSED true
#endif
#endif
#ifndef HANDGRAD_POOL_BYPASSED
#define HANDGRAD_POOL_BYPASSED false
#endif

namespace handgrad {
namespace internal {

constinit thread_local Pool pool{{}, {}, HANDGRAD_POOL_BYPASSED};

}  // namespace internal

namespace {

using internal::kAlignment;
using internal::pool;

std::size_t class_bytes(int size_class) {
  if (size_class < 8) return (static_cast<std::size_t>(size_class) + 1) * kAlignment;
  const int top = 3 + (size_class - 8) / 4;
  const auto quarter = static_cast<std::size_t>((size_class - 8) % 4);
  return ((std::size_t{1} << top) + ((quarter + 1) << (top - 2))) * kAlignment;
}

constexpr std::size_t kLarge = std::size_t{64} << 20;  // smaller blocks are not worth a look at the system

[[noreturn]] void fail(std::size_t bytes) {
  constexpr double kGiB = 1 << 30;
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "%.2f GiB more are needed, %.2f GiB are free",
                static_cast<double>(bytes) / kGiB, available_memory() / kGiB);
  throw MemoryError("memory", text.data(), {}, "a smaller model, batch_size or context_length");
}

/// Its destructor runs when the thread ends.
struct Closer {
  ~Closer() {
    pool_trim();
    pool.bypassed = true;
  }
};

}  // namespace

void* internal::pool_refill(int size_class) {
  static thread_local Closer closer;
  (void)closer;
  const std::size_t bytes = class_bytes(size_class);
  if (bytes >= kLarge && static_cast<double>(bytes) > available_memory()) fail(bytes);
  try {
    void* block = ::operator new (bytes, std::align_val_t{kAlignment});
    ++pool.stats.system_allocations;
    pool.stats.bytes_from_system += bytes;
    return block;
  } catch (const std::bad_alloc&) {
    fail(bytes);
  }
}

void internal::pool_return(void* block, int size_class) noexcept {
  pool.stats.bytes_from_system -= class_bytes(size_class);
  ::operator delete (block, std::align_val_t{kAlignment});
}

double available_memory() {
  double available = std::numeric_limits<double>::infinity();
  std::ifstream system("/proc/meminfo");
  std::string word;
  while (system >> word)
    if (word == "MemAvailable:") {
      double kib = 0;
      if (system >> kib) available = kib * 1024;
      break;
    }
  double limit = 0, used = 0, files = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit &&
      std::ifstream("/sys/fs/cgroup/memory.current") >> used) {
    std::ifstream parts("/sys/fs/cgroup/memory.stat");
    while (parts >> word)
      if (word == "file" && parts >> files) break;  // file caches can be reclaimed
    available = std::min(available, limit - used + files);
  }
  return available;
}

PoolStats pool_stats() { return pool.stats; }

void pool_trim() {
  for (int size_class = 0; size_class < internal::kPoolClasses; ++size_class) {
    while (internal::FreeBlock* block = pool.waiting[size_class]) {
      pool.waiting[size_class] = block->next;
      internal::pool_return(block, size_class);
    }
  }
}

}  // namespace handgrad
