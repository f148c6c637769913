// What the first numbers of a parameter are drawn from.
#pragma once

namespace handgrad::nn {

/// Made by `uniform`, `normal` or `constant`.
struct Distribution {
  /// Its family.
  enum class Type { uniform, normal, constant };
  Type type;                 ///< what `size` means
  double size;               ///< the bound, the standard deviation, or the number itself
  bool ends_branch = false;  ///< of the last Linear of a residual branch, x + branch(x)
  bool is_default = false;   ///< `set_init` may choose another: the layer has no opinion
};
/// From -bound to bound, each value as likely.
inline Distribution uniform(double bound) { return {Distribution::Type::uniform, bound}; }
/// Mean 0.
inline Distribution normal(double deviation) { return {Distribution::Type::normal, deviation}; }
/// Every number is this one.
inline Distribution constant(double value) { return {Distribution::Type::constant, value}; }
/// The same, for `set_init` to replace.
inline Distribution as_default(Distribution start) {
  start.is_default = true;
  return start;
}

}  // namespace handgrad::nn
