#include "handgrad/core/array.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ostream>

#include "handgrad/core/error.h"

namespace handgrad {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 44;  // 64 TiB of float32: beyond is a mistake

[[noreturn]] void throw_shape(const Shape& shape) {
  const bool negative = std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; });
  throw ShapeError("array", negative ? "sizes must not be negative, got " + shape.text()
                                     : "there must be at most 2^44 elements, got shape " + shape.text());
}

std::int64_t checked_numel(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(n, size, &n) || n > kMostElements) [[unlikely]]
      throw_shape(shape);
  return n;
}

template <class Body>
void for_any_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::float32:
      return body(float{});
    case DType::float64:
      return body(double{});
    case DType::int32:
      return body(std::int32_t{});
  }
}

template <class T>
std::string shortest(T value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

void append_text(std::string& out, const Array& array, int dim, std::int64_t& position) {
  if (dim == array.rank()) {
    for_any_type(array.dtype(), [&](auto zero) { out += shortest(array.data<decltype(zero)>()[position]); });
    ++position;
    return;
  }
  out += '[';
  for (std::int64_t i = 0; i < array.shape()[dim]; ++i) {
    if (i > 0) out += ", ";
    append_text(out, array, dim + 1, position);
  }
  out += ']';
}

}  // namespace

Array::Array(const Shape& shape, DType dtype) : numel_(checked_numel(shape)), shape_(shape), dtype_(dtype) {
  storage_ = Storage::make(bytes());
}

Array Array::full(const Shape& shape, double value, DType dtype) {
  Array a(shape, dtype);
  a.fill(value);
  return a;
}

Array Array::of(const std::vector<double>& values, const Shape& shape, DType dtype) {
  Array a(shape, dtype);
  if (a.numel() != static_cast<std::int64_t>(values.size()))
    throw ShapeError("array", "shape " + shape.text() + " needs " + std::to_string(a.numel()) +
                                  " values, got " + std::to_string(values.size()));
  for_any_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    std::transform(values.begin(), values.end(), a.mutable_data<T>(),
                   [](double v) { return static_cast<T>(v); });
  });
  return a;
}

Array Array::reshape(const Shape& shape) const {
  Array a = *this;
  a.shape_ = resolve_reshape("reshape", shape_, shape);
  return a;
}

Array Array::copy() const {
  if (!defined()) return {};
  Array a = like(*this);
  a.assign(*this);
  return a;
}

Array Array::to(DType dtype) const {
  if (dtype == dtype_) return copy();
  Array a(shape_, dtype);
  for_any_type(dtype_, [&](auto from) {
    for_any_type(dtype, [&](auto to) {
      using T = decltype(to);
      const auto* source = data<decltype(from)>();
      std::transform(source, source + numel_, a.mutable_data<T>(), [](auto v) { return static_cast<T>(v); });
    });
  });
  return a;
}

void Array::assign(const Array& source) {
  if (source.shape_ != shape_ || source.dtype_ != dtype_)
    throw ShapeError("assign", "both arrays must have one shape and one element type",
                     {{"to", shape_}, {"from", source.shape_}, {"to", dtype_}, {"from", source.dtype_}});
  if (numel_ == 0) return;
  for_any_type(dtype_, [&](auto zero) {
    using T = decltype(zero);
    std::memcpy(mutable_data<T>(), source.data<T>(), bytes());
  });
}

void Array::fill(double value) {
  for_any_type(dtype_, [&](auto zero) {
    using T = decltype(zero);
    std::fill_n(mutable_data<T>(), numel_, static_cast<T>(value));
  });
}

double Array::value(std::int64_t i) const {
  if (i < 0 || i >= numel_)
    throw IndexError("value",
                     "position must lie in 0.." + std::to_string(numel_ - 1) + ", got " + std::to_string(i),
                     {{"array", shape_}});
  double v = 0;
  for_any_type(dtype_, [&](auto zero) { v = static_cast<double>(data<decltype(zero)>()[i]); });
  return v;
}

std::vector<double> Array::values() const {
  std::vector<double> all(static_cast<std::size_t>(numel_));
  for_any_type(dtype_, [&](auto zero) {
    const auto* source = data<decltype(zero)>();
    std::transform(source, source + numel_, all.begin(), [](auto v) { return static_cast<double>(v); });
  });
  return all;
}

double Array::item() const {
  if (numel_ != 1) throw ShapeError("item", "must have exactly one element", {{"array", shape_}});
  return value(0);
}

std::string Array::text() const {
  if (!defined()) return "(undefined)";
  std::string out;
  std::int64_t position = 0;
  append_text(out, *this, 0, position);
  return out;
}

void Array::throw_type(DType asked) const {
  throw DTypeError("array", std::string("its numbers are ") + name_of(dtype_) + ", they were asked for as " +
                                name_of(asked));
}

std::ostream& operator<<(std::ostream& out, const Array& array) { return out << array.text(); }

Shape resolve_reshape(const char* op, const Shape& from, const Shape& wanted) {
  Shape shape = wanted;
  int open = -1;
  std::int64_t known = 1;
  bool ok = true;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1) {
      ok = ok && open < 0;
      open = i;
    } else {
      ok = ok && shape[i] >= 0 && !__builtin_mul_overflow(known, shape[i], &known);
    }
  }
  if (ok && open >= 0) {
    ok = known > 0 && from.numel() % known == 0;
    if (ok) shape[open] = from.numel() / known;
  }
  if (!ok || (open < 0 && known != from.numel()))
    throw ShapeError(
        op, "shape must hold the " + std::to_string(from.numel()) + " elements of x, got " + wanted.text(),
        {{"x", from}});
  return shape;
}

}  // namespace handgrad
