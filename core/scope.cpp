#include "handgrad/core/scope.h"

#include <map>
#include <memory>
#include <mutex>

namespace handgrad {
namespace {

constexpr std::uint64_t hash_of(std::string_view text) {  // FNV-1a, 64 bit: the same on every platform
  std::uint64_t h = 14695981039346656037ULL;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h;
}

const Scope& root_scope() {
  static const Scope root{"", hash_of("")};
  return root;
}

constinit thread_local const Scope* current = nullptr;

}  // namespace

const Scope& scope_of(std::string_view path) {
  if (path.empty()) return root_scope();
  static std::mutex mutex;
  // Never destroyed: nodes in other static objects may still point here while the program ends.
  static auto& scopes = *new std::map<std::string, std::unique_ptr<const Scope>, std::less<>>();
  const std::lock_guard lock(mutex);
  auto found = scopes.find(path);
  if (found == scopes.end()) {
    auto scope = std::make_unique<const Scope>(Scope{std::string(path), hash_of(path)});
    found = scopes.emplace(std::string(path), std::move(scope)).first;
  }
  return *found->second;
}

const Scope& current_scope() { return current != nullptr ? *current : root_scope(); }

ScopeGuard::ScopeGuard(const Scope& scope) : ScopedValue(current, &scope) {}

}  // namespace handgrad
