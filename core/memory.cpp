#include "handgrad/core/memory.h"

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
  void* block = ::operator new (bytes, std::align_val_t{kAlignment});
  ++pool.stats.system_allocations;
  pool.stats.bytes_from_system += bytes;
  return block;
}

void internal::pool_return(void* block, int size_class) noexcept {
  pool.stats.bytes_from_system -= class_bytes(size_class);
  ::operator delete (block, std::align_val_t{kAlignment});
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
