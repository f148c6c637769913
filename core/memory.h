// Pooled memory. After the first training step every array and every node is served from what an earlier one
// gave back, so the system allocator is not called at all and pages stay resident (fresh ones cost four times more).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace handgrad {

/// At least `bytes` bytes, aligned to 64, from the calling thread's cache of returned blocks.
void* pool_allocate(std::size_t bytes);

/// Gives a block back to the calling thread's cache. `bytes` is what was asked for.
void pool_release(void* block, std::size_t bytes) noexcept;

struct PoolStats {
  std::uint64_t system_allocations = 0;  ///< blocks asked of the system by this thread so far
  std::size_t bytes_from_system = 0;     ///< held by arrays or waiting in the cache, this thread
};
PoolStats pool_stats();

/// Returns the calling thread's waiting blocks to the system.
void pool_trim();

/// Work space for the length of a block: pooled, aligned to 64, not initialised.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) : data_(pool_allocate(bytes)), bytes_(bytes) {}
  ~Scratch() { pool_release(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* data() const { return data_; }
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
  explicit Ref(T* object) : object_(object) { hold(); }
  Ref(const Ref& other) : object_(other.object_) { hold(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { drop(); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() { Ref().swap(*this); }
  void swap(Ref& other) noexcept { std::swap(object_, other.object_); }

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
