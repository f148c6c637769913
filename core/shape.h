// Shape: the sizes of an array's dimensions, kept inside the object so that a shape never allocates.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace handgrad {

/// A short list of integers: dimensions of an array, or a choice of them (negative ones count from the end).
/// At most kMaxRank entries; a longer list is a ShapeError.
class Shape {
 public:
  static constexpr int kMaxRank = 6;  ///< dimensions at most

  constexpr Shape() = default;
  /// @{ The sizes, first dimension first. From a vector only explicitly: its numbers might be values.
  constexpr Shape(std::initializer_list<std::int64_t> sizes) : Shape(sizes.begin(), sizes.size()) {}
  explicit Shape(const std::vector<std::int64_t>& sizes) : Shape(sizes.data(), sizes.size()) {}
  constexpr Shape(const std::int64_t* sizes, std::size_t rank) {
    if (rank > kMaxRank) throw_rank(rank);
    rank_ = static_cast<std::int32_t>(rank);
    for (std::size_t i = 0; i < rank; ++i) sizes_[i] = sizes[i];
  }
  /// @}

  constexpr int rank() const { return rank_; }         ///< number of dimensions
  constexpr bool empty() const { return rank_ == 0; }  ///< whether it is the shape of a scalar
  /// @{ Size of dimension i of 0 .. rank() - 1, unchecked.
  constexpr std::int64_t operator[](int i) const { return sizes_[i]; }
  constexpr std::int64_t& operator[](int i) { return sizes_[i]; }
  /// @}

  /// Size of dimension `dim`; negative ones count from the end. ShapeError when there is no such dimension.
  constexpr std::int64_t at(int dim) const {
    if (dim < -rank_ || dim >= rank_) [[unlikely]]
      throw_dim(dim);
    return sizes_[dim < 0 ? dim + rank_ : dim];
  }
  /// Size of the last dimension; the rank must be at least 1.
  constexpr std::int64_t last() const { return sizes_[rank_ - 1]; }

  /// Number of elements; 1 for the empty shape of a scalar.
  constexpr std::int64_t numel() const { return numel(0, rank_); }
  /// Number of elements in the dimensions begin .. end - 1; 1 for none.
  constexpr std::int64_t numel(int begin, int end) const {
    std::int64_t n = 1;
    for (int i = begin; i < end; ++i) n *= sizes_[i];
    return n;
  }

  /// @{ The sizes, for a range-based for loop.
  constexpr const std::int64_t* begin() const { return sizes_; }
  constexpr const std::int64_t* end() const { return sizes_ + rank_; }
  /// @}

  /// One dimension more, at the end.
  void push_back(std::int64_t size) {
    if (rank_ == kMaxRank) throw_rank(static_cast<std::size_t>(rank_) + 1);
    sizes_[rank_++] = size;
  }

  /// The shape with its last dimension replaced, or removed.
  Shape with_last(std::int64_t size) const {
    Shape s = *this;
    s.sizes_[rank_ - 1] = size;
    return s;
  }
  /// The shape of one number for each row.
  Shape without_last() const { return Shape(sizes_, static_cast<std::size_t>(rank_ - 1)); }

  /// Equal ranks and equal sizes.
  friend constexpr bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.sizes_[i] != b.sizes_[i]) return false;
    return true;
  }

  /// "[2, 4, 6]"; "[]" for a scalar.
  std::string text() const;

 private:
  [[noreturn]] static void throw_rank(std::size_t rank);
  [[noreturn]] void throw_dim(int dim) const;

  std::int64_t sizes_[kMaxRank] = {};
  std::int32_t rank_ = 0;
};

/// Dimensions to reduce, permute or keep; `mean(x, -1)` and `sum(x, {0, 1})` both read as in the book.
class Dims : public Shape {
 public:
  /// @{ One dimension, a list, or the numbers of a shape.
  Dims(int dim) : Shape({dim}) {}  // NOLINT(google-explicit-constructor): a single dimension is a list of one
  Dims(std::initializer_list<std::int64_t> dims) : Shape(dims) {}
  explicit Dims(const Shape& dims) : Shape(dims) {}
  /// @}
};

/// NumPy's rule: shapes are aligned at the end, sizes must be equal or 1. Returns false when they do not fit.
bool broadcast_shapes(const Shape& a, const Shape& b, Shape& out);

}  // namespace handgrad
