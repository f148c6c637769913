// Array: numbers. A shape, an element type and shared, contiguous, row-major storage. No strides, no gradient.
#pragma once

#include <cassert>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <vector>

#include "handgrad/core/dtype.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/shape.h"

namespace handgrad {

/// The head of a block of numbers. The numbers follow it: at a multiple of 64 bytes, or, when all of them fit into 32
/// bytes, in the head's own cache line.
struct alignas(32) Storage {
  std::uint32_t refs = 0;     ///< handles that share the numbers
  std::uint32_t version = 0;  ///< how often write access was requested
  std::size_t bytes = 0;      ///< of the numbers
  const void* owner =
      &internal::pool;  ///< identifies the thread: counts are not atomic, so only this one may share it

  /// A block for so many bytes of numbers, which are not initialized.
  static Ref<Storage> make(std::size_t number_bytes) {
    const std::size_t front = front_gap(number_bytes);
    auto* block = static_cast<std::byte*>(pool_allocate(front + sizeof(Storage) + number_bytes));
    auto* storage = ::new (block + front) Storage;
    storage->bytes = number_bytes;
    return Ref<Storage>(storage);
  }

  /// Gives the block back to the pool. Only the thread that made it may do so.
  static void destroy(Storage* storage) noexcept {
    assert(storage->owner == &internal::pool && "an array was released by another thread");
    const std::size_t number_bytes = storage->bytes;
    const std::size_t front = front_gap(number_bytes);
    storage->~Storage();
    pool_release(reinterpret_cast<std::byte*>(storage) - front, front + sizeof(Storage) + number_bytes);
  }

  void* numbers() { return this + 1; }  ///< what follows the head

 private:
  static std::size_t front_gap(std::size_t number_bytes) { return number_bytes <= 32 ? 0 : 32; }
};
static_assert(sizeof(Storage) == 32);

/// Handle to numbers. Copies share them; `reshape` shares them; everything else copies.
class Array {
 public:
  Array() = default;  ///< no numbers at all: `defined()` is false
  explicit Array(const Shape& shape, DType dtype = DType::float32);  ///< numbers not initialized
  /// An array with the shape and type of another, numbers not initialized.
  static Array like(const Array& other) {
    Array a;
    a.storage_ = Storage::make(other.bytes());
    a.numel_ = other.numel_;
    a.shape_ = other.shape_;
    a.dtype_ = other.dtype_;
    return a;
  }

  /// One double for each row of `x`: shape [..., 1], float64, numbers not initialized.
  static Array per_row(const Array& x) { return Array(x.shape().with_last(1), DType::float64); }

  /// @{ Every number is the same one.
  static Array zeros(const Shape& shape, DType dtype = DType::float32) { return full(shape, 0, dtype); }
  static Array full(const Shape& shape, double value, DType dtype = DType::float32);
  /// @}
  /// The values in row-major order; their count must be the shape's, else ShapeError.
  static Array of(const std::vector<double>& values, const Shape& shape, DType dtype = DType::float32);

  /// False: made without a shape, there are no numbers.
  bool defined() const { return static_cast<bool>(storage_); }
  const Shape& shape() const { return shape_; }  ///< empty for a scalar
  DType dtype() const { return dtype_; }         ///< float32 or float64; int32 for token ids
  int rank() const { return shape_.rank(); }     ///< number of dimensions, 0 for a scalar
  std::int64_t numel() const { return numel_; }  ///< number of elements, 1 for a scalar
  /// The size of the numbers, without the header.
  std::size_t bytes() const { return static_cast<std::size_t>(numel_) * size_of(dtype_); }

  /// The numbers, to read; nullptr when not defined. T must be the element type, else DTypeError.
  template <class T>
  const T* data() const {
    if (!storage_) return nullptr;
    if (dtype_of<T>() != dtype_) throw_type(dtype_of<T>());
    return static_cast<const T*>(storage_->numbers());
  }

  /// The numbers, to write: every call makes a new version, by which a recorded operation notices that what it
  /// saved was changed. All handles that share the storage see the new numbers.
  template <class T>
  T* mutable_data() {
    if (!storage_) return nullptr;
    if (dtype_of<T>() != dtype_) throw_type(dtype_of<T>());
    ++storage_->version;
    return static_cast<T*>(storage_->numbers());
  }

  /// How often write access was requested through any handle that shares the numbers; 0 when not defined.
  std::uint32_t version() const { return storage_ ? storage_->version : 0; }
  /// Whether this is the only handle, so that writing cannot be seen elsewhere.
  bool is_sole_owner() const { return storage_ && storage_->refs == 1; }
  /// So a write to one shows in the other.
  bool shares_storage(const Array& other) const { return storage_.get() == other.storage_.get(); }

  /// The same numbers under another shape of equal count. At most one size may be -1: it is computed.
  Array reshape(const Shape& shape) const;
  Array copy() const;  ///< with its own numbers
  /// A copy in another element type (a new array also when it is the same).
  Array to(DType dtype) const;
  /// Copies the numbers of `source`, of equal shape and type.
  void assign(const Array& source);
  void fill(double value);  ///< writes `value` to every element

  /// Element at flat row-major position `i`, as a double.
  double value(std::int64_t i) const;
  std::vector<double> values() const;  ///< all elements as doubles, in row-major order
  /// The single number of an array of one element, else ShapeError.
  double item() const;

  /// "[[1, 2], [3, 4]]", in the shortest digits that read back to the same number.
  std::string text() const;

 private:
  [[noreturn]] void throw_type(DType asked) const;

  Ref<Storage> storage_;
  std::int64_t numel_ = 0;
  Shape shape_;
  DType dtype_ = DType::float32;
};

/// Prints text().
std::ostream& operator<<(std::ostream& out, const Array& array);

/// -1 in `wanted` replaced by what `numel` leaves for it; ShapeError naming `op` when the counts do not fit.
Shape resolve_reshape(const char* op, const Shape& from, const Shape& wanted);

}  // namespace handgrad
