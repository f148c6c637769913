// Scope: the module whose forward or backward is running. It gives errors, recorded operations and random streams an
// address such as trf_blocks.3.norm1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

/// Sets the calling thread's scope for a block, then restores the previous one.
class ScopeGuard {
 public:
  explicit ScopeGuard(const Scope& scope);  ///< must outlive the guard, as those of scope_of do
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  const Scope* before_;
};

}  // namespace handgrad
