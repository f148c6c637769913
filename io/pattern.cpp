#include "handgrad/io/pattern.h"

namespace handgrad::io {
namespace {

/// Goes back to the last star only, which takes one character more each time: no recursion, no blow-up.
bool matches_all_of(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos, after_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.find_first_of("*?") != std::string_view::npos) return matches_all_of(pattern, name);
  if (pattern.empty()) return false;
  for (std::size_t at = name.find(pattern); at != std::string_view::npos; at = name.find(pattern, at + 1)) {
    const std::size_t after = at + pattern.size();
    if ((at == 0 || name[at - 1] == '.') && (after == name.size() || name[after] == '.')) return true;
  }
  return false;
}

bool is_end_of(std::string_view end, std::string_view name) {
  if (end.empty() || !name.ends_with(end)) return false;
  return name.size() == end.size() || name[name.size() - end.size() - 1] == '.';
}

}  // namespace handgrad::io
