// Pooled memory. After the first training step every array and every node reuses a block that an earlier one returned: the
// system allocator is not called at all, and pages stay resident (fresh ones cost four times more).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace handgrad {

/// What the pool has requested from the system.
struct PoolStats {
  std::uint64_t system_allocations = 0;  ///< blocks requested by this thread so far
  std::size_t bytes_from_system = 0;     ///< held by arrays or waiting in the cache, this thread
};
PoolStats pool_stats();  ///< of the calling thread

// The cache is in the header because an operation on four numbers asks it for three blocks: inlined, with the class
// known at compile time where the size is, that takes a few nanoseconds.
namespace internal {

constexpr std::size_t kAlignment = 64;
constexpr int kPoolClasses = 4 * 42;  // four sizes to each power of two, from 64 bytes on

struct FreeBlock {
  FreeBlock* next;
};

struct Pool {
  FreeBlock* waiting[kPoolClasses];
  PoolStats stats;
  bool bypassed;  // returned blocks go to the system: the thread is ending, or addresses are being checked
};
extern constinit thread_local Pool pool;

// Up to 512 bytes the classes are 64 apart; above, the four quarters of each power of two.
constexpr int pool_class(std::size_t bytes) {
  const std::size_t lines_less_one = bytes == 0 ? 0 : (bytes - 1) / kAlignment;
  if (lines_less_one < 8) return static_cast<int>(lines_less_one);
  const auto top = static_cast<int>(std::bit_width(lines_less_one)) - 1;
  const std::size_t quarter = lines_less_one >> (top - 2) & 3;
  return 8 + 4 * (top - 3) + static_cast<int>(quarter);
}

void* pool_refill(int size_class);
void pool_return(void* block, int size_class) noexcept;

}  // namespace internal

/// At least `bytes` bytes, aligned to 64, from the calling thread's cache of returned blocks. MemoryError when there is
/// not enough memory.
inline void* pool_allocate(std::size_t bytes) {
  const int size_class = internal::pool_class(bytes);
  internal::FreeBlock*& head = internal::pool.waiting[size_class];
  internal::FreeBlock* block = head;
  if (block == nullptr) [[unlikely]]
    return internal::pool_refill(size_class);
  head = block->next;
  return block;
}

/// Gives a block back to the calling thread's cache. `bytes` is what was asked for.
inline void pool_release(void* block, std::size_t bytes) noexcept {
  internal::Pool& pool = internal::pool;
  const int size_class = internal::pool_class(bytes);
  if (pool.bypassed) [[unlikely]]
    return internal::pool_return(block, size_class);
  pool.waiting[size_class] = ::new (block) internal::FreeBlock{pool.waiting[size_class]};
}

/// Returns the calling thread's waiting blocks to the system.
void pool_trim();

/// Bytes that this process may still take: the system's, or those of the control group it runs in. Linux only; infinite
/// elsewhere. Large blocks are requested only if they fit: a system that overcommits would kill the process in the middle
/// of a step.
double available_memory();

/// Work space for the length of a block: pooled, aligned to 64, not initialized.
class Scratch {
 public:
  /// In bytes, of the calling thread's pool.
  explicit Scratch(std::size_t bytes) : data_(pool_allocate(bytes)), bytes_(bytes) {}
  ~Scratch() { pool_release(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* data() const { return data_; }  ///< as many bytes as were asked for
  /// The same as numbers of a type.
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  std::size_t bytes_;
};

/// Shared ownership by a count inside the object. The count is not atomic (an atomic one doubles the cost of a
/// small operation): an object and its references belong to one thread. T has `refs` and `static void destroy(T*)`.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) { hold(); }  ///< one owner more; nullptr is allowed
  /// @{ One owner more, or the owner moved.
  Ref(const Ref& other) : object_(other.object_) { hold(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  /// @}
  ~Ref() { drop(); }

  /// @{ The object, nullptr when there is none.
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  /// @}
  explicit operator bool() const { return object_ != nullptr; }  ///< whether there is an object
  void reset() { Ref().swap(*this); }  ///< gives up its part; the last one destroys the object
  void swap(Ref& other) noexcept { std::swap(object_, other.object_); }  ///< changes no count

 private:
  void hold() {
    if (object_ != nullptr) ++object_->refs;
  }
  void drop() {
    if (object_ != nullptr && --object_->refs == 0) T::destroy(object_);
  }

  T* object_ = nullptr;
};

}  // namespace handgrad
