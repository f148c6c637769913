#include "handgrad/core/memory.h"

#include <algorithm>
#include <bit>
#include <new>

// Under AddressSanitizer blocks go straight to the system, so that a use after release is seen.
#if defined(__SANITIZE_ADDRESS__)
#define HANDGRAD_POOL_CACHES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HANDGRAD_POOL_CACHES 0
#endif
#endif
#ifndef HANDGRAD_POOL_CACHES
#define HANDGRAD_POOL_CACHES 1
#endif

namespace handgrad {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr int kClasses = 4 * 42;  // four sizes to each power of two, from 64 bytes on

struct FreeBlock {
  FreeBlock* next;
};

struct Cache {
  FreeBlock* waiting[kClasses];
  PoolStats stats;
  bool closed;  // the thread is ending: what comes back now goes to the system
};

constinit thread_local Cache cache{};

// Up to 512 bytes the classes are 64 apart; above, the four quarters of each power of two.
int class_of(std::size_t bytes) {
  const std::size_t lines = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment;
  if (lines <= 8) return static_cast<int>(lines) - 1;
  const auto top = static_cast<int>(std::bit_width(lines - 1)) - 1;  // lines is in (2^top, 2^(top+1)]
  const std::size_t quarter = (lines - 1) >> (top - 2) & 3;
  return 8 + 4 * (top - 3) + static_cast<int>(quarter);
}

std::size_t class_bytes(int size_class) {
  if (size_class < 8) return (static_cast<std::size_t>(size_class) + 1) * kAlignment;
  const int top = 3 + (size_class - 8) / 4;
  const auto quarter = static_cast<std::size_t>((size_class - 8) % 4);
  return ((std::size_t{1} << top) + ((quarter + 1) << (top - 2))) * kAlignment;
}

void* from_system(std::size_t bytes) {
  void* block = ::operator new(bytes, std::align_val_t{kAlignment});
  ++cache.stats.system_allocations;
  cache.stats.bytes_from_system += bytes;
  return block;
}

void to_system(void* block, std::size_t bytes) noexcept {
  cache.stats.bytes_from_system -= bytes;
  ::operator delete(block, std::align_val_t{kAlignment});
}

/// Its destructor runs when the thread ends.
struct Closer {
  ~Closer() {
    pool_trim();
    cache.closed = true;
  }
};

void* refill(int size_class) {
  static thread_local Closer closer;
  (void)closer;
  return from_system(class_bytes(size_class));
}

}  // namespace

void* pool_allocate(std::size_t bytes) {
  const int size_class = class_of(bytes);
  FreeBlock*& head = cache.waiting[size_class];
  if (head == nullptr) return refill(size_class);
  FreeBlock* block = head;
  head = block->next;
  return block;
}

void pool_release(void* block, std::size_t bytes) noexcept {
  const int size_class = class_of(bytes);
  if (!HANDGRAD_POOL_CACHES || cache.closed) return to_system(block, class_bytes(size_class));
  cache.waiting[size_class] = new (block) FreeBlock{cache.waiting[size_class]};
}

PoolStats pool_stats() { return cache.stats; }

void pool_trim() {
  for (int size_class = 0; size_class < kClasses; ++size_class) {
    while (FreeBlock* block = cache.waiting[size_class]) {
      cache.waiting[size_class] = block->next;
      to_system(block, class_bytes(size_class));
    }
  }
}

}  // namespace handgrad
