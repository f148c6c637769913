#include "handgrad/core/shape.h"

#include <algorithm>

#include "handgrad/core/error.h"

namespace handgrad {

std::string Shape::text() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) s += ", ";
    s += std::to_string(sizes_[i]);
  }
  return s + "]";
}

void Shape::refuse_rank(std::size_t rank) {
  throw ShapeError(
      "shape", "must have at most " + std::to_string(kMaxRank) + " dimensions, got " + std::to_string(rank));
}

void Shape::refuse_dim(int dim) const {
  throw ShapeError("shape",
                   rank_ == 0 ? "a scalar has no dimensions, got dimension " + std::to_string(dim)
                              : "dimension must lie in " + std::to_string(-rank_) + ".." +
                                    std::to_string(rank_ - 1) + ", got " + std::to_string(dim),
                   {{"shape", *this}});
}

bool broadcast_shapes(const Shape& a, const Shape& b, Shape& out) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  out = longer;
  const int offset = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    const std::int64_t m = longer[offset + i];
    const std::int64_t n = shorter[i];
    if (m != n && m != 1 && n != 1) return false;
    out[offset + i] = m == 1 ? n : m;
  }
  return true;
}

}  // namespace handgrad
