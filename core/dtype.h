// The element types of arrays. Numbers are float32 or float64; int32 holds token ids and never has a gradient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace handgrad {

/// float32 for training, float64 for checks, int32 for token ids.
enum class DType : std::uint8_t { float32, float64, int32 };

constexpr std::size_t size_of(DType dtype) { return dtype == DType::float64 ? 8 : 4; }  ///< bytes

/// As configs and messages write it: "float32".
constexpr const char* name_of(DType dtype) {
  return dtype == DType::float32 ? "float32" : dtype == DType::float64 ? "float64" : "int32";
}

/// The element type of float, double or std::int32_t; other types do not compile.
template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t>,
                "handgrad arrays hold float, double or int32_t");
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  return DType::int32;
}

/// Calls `body` with a value of the C++ type behind `dtype`: the one line by which an operation reaches its
/// templated kernel. `body` takes one argument, `auto zero`, and uses `decltype(zero)`. Only for numbers with a
/// fraction: operations check their operands first (core/checks.h), so int32 never gets here.
template <class Body>
decltype(auto) dispatch(DType dtype, Body&& body) {
  if (dtype == DType::float64) return body(double{});
  return body(float{});
}

}  // namespace handgrad
