// Selecting, sorting and comparing: results change in jumps, so there is no gradient.
//
// Comparisons give 1 or 0 in the operands' type, to be used as masks. NaN compares as false, but argmax and topk treat
// it as the largest number, so that it does not hide.
#include <algorithm>

#include "handgrad/core/broadcast.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/walk.h"

namespace handgrad {
namespace {

constexpr double kElement = 0.8;  // nanoseconds

template <class Compare>
Tensor compare(const char* op, const Tensor& a, const Tensor& b, const Compare& holds) {
  const DType type = checks::common_type(op, {{"a", a}, {"b", b}});
  Array y(broadcast_shape(op, {{"a", a}, {"b", b}}), type);
  dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    T* to = y.mutable_data<T>();
    const auto compare_element = [&](std::int64_t i, T p, T q) { to[i] = holds(p, q) ? T(1) : T(0); };
    for_each_element<T>(y.shape(), grain_for(kElement), compare_element, a.array(), b.array());
  });
  return no_gradient(op, "a comparison is constant between its jumps", std::move(y), {a, b});
}

template <class Compare>
Tensor compare(const char* op, const Tensor& a, double b, const Compare& holds) {
  checks::common_type(op, {{"a", a}});
  return compare(op, a, Tensor::scalar(b, a.dtype()), holds);
}

constexpr auto kGreater = [](auto a, auto b) { return a > b; };
constexpr auto kLess = [](auto a, auto b) { return a < b; };
constexpr auto kGreaterEqual = [](auto a, auto b) { return a >= b; };
constexpr auto kLessEqual = [](auto a, auto b) { return a <= b; };
constexpr auto kEqual = [](auto a, auto b) { return a == b; };

/// x where keep(column - row) holds, else 0, in each matrix of the last two dimensions.
template <class Keep>
Tensor triangle(const char* op, const Tensor& x, const Keep& keep) {
  const DType type = checks::common_type(op, {{"x", x}});
  if (x.rank() < 2) checks::throw_shape(op, "x must have at least two dimensions", {{"x", x}});
  const std::int64_t rows = x.size(-2), columns = x.size(-1);
  Array y(x.shape(), type);
  dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.array().data<T>();
    T* to = y.mutable_data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i)
      to[i] = keep(i % columns - i / columns % rows) ? from[i] : T(0);
  });
  return no_gradient(op, "it makes masks", std::move(y), {x});
}

/// The positions of the k largest of n, in descending order; equal numbers in their order.
template <class T>
void find_largest(const T* x, std::int64_t n, std::int64_t k, std::int32_t* all, std::int32_t* positions) {
  for (std::int64_t i = 0; i < n; ++i) all[i] = static_cast<std::int32_t>(i);
  std::partial_sort(all, all + k, all + n, [x](std::int32_t i, std::int32_t j) {
    return precedes(x[i], x[j]) || (i < j && !precedes(x[j], x[i]));
  });
  std::copy_n(all, k, positions);
}

}  // namespace

Ids argmax(const Tensor& x, int dim) {
  checks::common_type("argmax", {{"x", x}});
  const int d = checks::dimension("argmax", dim, x);
  const std::int64_t size = x.size(d);
  const std::int64_t outer = x.shape().numel(0, d), inner = x.shape().numel(d + 1, x.rank());
  Shape shape;
  for (int i = 0; i < x.rank(); ++i)
    if (i != d) shape.push_back(x.size(i));
  if (size == 0 && outer * inner > 0)
    checks::throw_shape("argmax", "dimension " + std::to_string(d) + " must not be empty", {{"x", x}});
  Array positions(shape, DType::int32);
  auto* to = positions.mutable_data<std::int32_t>();
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.array().data<T>();
    const double cost = kElement * static_cast<double>(size);
    parallel_ranges(outer * inner, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* row = from + i / inner * size * inner + i % inner;
        std::int64_t best = 0;
        for (std::int64_t j = 1; j < size; ++j)
          if (precedes(row[j * inner], row[best * inner])) best = j;
        to[i] = static_cast<std::int32_t>(best);
      }
    });
  });
  return Ids::from(std::move(positions));
}

std::pair<Tensor, Ids> topk(const Tensor& x, std::int64_t k) {
  const DType type = checks::common_type("topk", {{"x", x}});
  if (x.rank() == 0) throw ShapeError("topk", "x must have at least one dimension, got a scalar");
  const std::int64_t size = x.size(kLast);
  if (k < 0 || k > size)
    throw ValueError(
        "topk",
        "k must lie in 0.." + std::to_string(size) + ", the last dimension of x, got " + std::to_string(k),
        checks::shapes({{"x", x}}));
  const Shape shape = x.shape().with_last(k);
  Array values(shape, type), positions(shape, DType::int32);
  auto* to_positions = positions.mutable_data<std::int32_t>();
  const Scratch order(static_cast<std::size_t>(size) * sizeof(std::int32_t));
  dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.array().data<T>();
    T* to = values.mutable_data<T>();
    const std::int64_t rows = k == 0 ? 0 : values.numel() / k;
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* row = from + r * size;
      find_largest(row, size, k, order.as<std::int32_t>(), to_positions + r * k);
      for (std::int64_t i = 0; i < k; ++i) to[r * k + i] = row[to_positions[r * k + i]];
    }
  });
  return {no_gradient("topk", "it selects for sampling", std::move(values), {x}),
          Ids::from(std::move(positions))};
}

Tensor triu(const Tensor& x, std::int64_t diagonal) {
  return triangle("triu", x, [diagonal](std::int64_t above) { return above >= diagonal; });
}
Tensor tril(const Tensor& x, std::int64_t diagonal) {
  return triangle("tril", x, [diagonal](std::int64_t above) { return above <= diagonal; });
}

Tensor arange(std::int64_t n, DType dtype) {
  if (n < 0) throw ValueError("arange", "n must not be negative, got " + std::to_string(n));
  if (dtype == DType::int32)
    throw DTypeError("arange", "numbers must be float32 or float64", {}, "arange_ids()");
  Array y({n}, dtype);
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* to = y.mutable_data<T>();
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(i);
  });
  return no_gradient("arange", "it has no operand", std::move(y), {});
}

Ids arange_ids(std::int64_t n) {
  if (n < 0) throw ValueError("arange_ids", "n must not be negative, got " + std::to_string(n));
  Array y({n}, DType::int32);
  auto* to = y.mutable_data<std::int32_t>();
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<std::int32_t>(i);
  return Ids::from(std::move(y));
}

Tensor operator>(const Tensor& a, const Tensor& b) { return compare("operator>", a, b, kGreater); }
Tensor operator<(const Tensor& a, const Tensor& b) { return compare("operator<", a, b, kLess); }
Tensor operator>=(const Tensor& a, const Tensor& b) { return compare("operator>=", a, b, kGreaterEqual); }
Tensor operator<=(const Tensor& a, const Tensor& b) { return compare("operator<=", a, b, kLessEqual); }
Tensor equal(const Tensor& a, const Tensor& b) { return compare("equal", a, b, kEqual); }
Tensor operator>(const Tensor& a, double b) { return compare("operator>", a, b, kGreater); }
Tensor operator<(const Tensor& a, double b) { return compare("operator<", a, b, kLess); }
Tensor operator>=(const Tensor& a, double b) { return compare("operator>=", a, b, kGreaterEqual); }
Tensor operator<=(const Tensor& a, double b) { return compare("operator<=", a, b, kLessEqual); }
Tensor equal(const Tensor& a, double b) { return compare("equal", a, b, kEqual); }

}  // namespace handgrad
