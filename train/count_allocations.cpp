// Counts the calls to the system's allocator, so that `bench step` can show that a training step makes none. Part of
// the handgrad program only: a library does not replace its user's operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include "handgrad/train/bench.h"

namespace {
std::atomic<std::uint64_t> allocations{0};

void* counted(void* block) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
std::size_t at_least_1(std::size_t bytes) { return bytes > 0 ? bytes : 1; }
}  // namespace

std::uint64_t handgrad::train::counted_allocations() { return allocations.load(std::memory_order_relaxed); }

void* operator new(std::size_t bytes) { return counted(std::malloc(at_least_1(bytes))); }
void* operator new(std::size_t bytes, std::align_val_t align) {
  const auto unit = static_cast<std::size_t>(align);
  return counted(std::aligned_alloc(unit, (at_least_1(bytes) + unit - 1) / unit * unit));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
