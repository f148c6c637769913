// Scope: the module whose forward or backward is running. It gives errors, recorded operations and random streams an
// address such as trf_blocks.3.norm1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace handgrad {

/// A place in the model. Compared by address: there is one for each path.
struct Scope {
  std::string path;    ///< "trf_blocks.3.norm1"; empty outside of any module
  std::uint64_t hash;  ///< of the path: the stream of its random numbers
};

/// The one Scope with this path. Scopes live until the program ends: recorded operations may outlive a module.
const Scope& scope_of(std::string_view path);

/// The scope of the calling thread; the empty one outside of any module.
const Scope& current_scope();

/// Gives a variable of the calling thread another value for a block, then restores the previous one.
template <class T>
class ScopedValue {
 public:
  /// From now on `variable` is `value`.
  ScopedValue(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~ScopedValue() { variable_ = before_; }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

 private:
  T& variable_;
  const T before_;
};

/// Sets the calling thread's scope for a block.
class ScopeGuard : ScopedValue<const Scope*> {
 public:
  explicit ScopeGuard(const Scope& scope);  ///< must outlive the guard, as those of scope_of do
};

}  // namespace handgrad
