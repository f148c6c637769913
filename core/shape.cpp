#include "handgrad/core/shape.h"

#include <algorithm>

namespace handgrad {

std::string Shape::text() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) s += ", ";
    s += std::to_string(sizes_[i]);
  }
  return s + "]";
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
