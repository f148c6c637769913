// Counts the calls to the system's allocator, so that `bench step` can show that a training step makes none. Part of
// the handgrad program only: a library does not replace its user's operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include "handgrad/cli/bench.h"

namespace {
std::atomic<std::uint64_t> allocations{0};

std::size_t at_least_1(std::size_t bytes) { return bytes > 0 ? bytes : 1; }
void* counted(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(at_least_1(bytes));
}
void* counted(std::size_t bytes, std::align_val_t align) {
  const auto unit = static_cast<std::size_t>(align);
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::aligned_alloc(unit, (at_least_1(bytes) + unit - 1) / unit * unit);
}
void* checked(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
}  // namespace

std::uint64_t handgrad::cli::counted_allocations() { return allocations.load(std::memory_order_relaxed); }

// All forms together: one that was left to the library would be given back here to another allocator.
void* operator new(std::size_t bytes) { return checked(counted(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t align) { return checked(counted(bytes, align)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void* operator new(std::size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept {
  return counted(bytes, align);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
