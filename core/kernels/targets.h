// The instruction sets that kernels are compiled for, and the one in use: the best that this CPU has, chosen at program
// start.
//
// A source with a part `#ifdef HANDGRAD_TARGET` is compiled once more for each instruction set, with its own flags and
// namespace (kernels.cmake finds such files). That part includes no standard header with inline functions: compiled
// for AVX-512, those could be linked into code that runs on any machine.
#pragma once

#include <stdint.h>

/// HANDGRAD_EACH_TARGET(declarations): declares functions in the namespace of each instruction set. Used at global
/// scope, by both parts of a file.
///
/// HANDGRAD_ACTIVE(function): a pointer to that function for the instruction set in use.
///
/// HANDGRAD_ROWS(name): the function template `name` as for_rows takes it (core/ops/rows.h).
#if defined(HANDGRAD_TARGET)
#define HANDGRAD_EACH_TARGET(...)                \
  namespace handgrad::kernels::HANDGRAD_TARGET { \
  __VA_ARGS__                                    \
  }
#elif defined(HANDGRAD_X86_TARGETS)
#define HANDGRAD_EACH_TARGET(...)         \
  namespace handgrad::kernels::baseline { \
  __VA_ARGS__                             \
  }                                       \
  namespace handgrad::kernels::avx2 {     \
  __VA_ARGS__                             \
  }                                       \
  namespace handgrad::kernels::avx512 {   \
  __VA_ARGS__                             \
  }
#define HANDGRAD_ACTIVE(...)                                               \
  ::handgrad::kernels::active<&::handgrad::kernels::baseline::__VA_ARGS__, \
                              &::handgrad::kernels::avx2::__VA_ARGS__,     \
                              &::handgrad::kernels::avx512::__VA_ARGS__>()
#else
#define HANDGRAD_EACH_TARGET(...)         \
  namespace handgrad::kernels::baseline { \
  __VA_ARGS__                             \
  }
#define HANDGRAD_ACTIVE(...) ::handgrad::kernels::active<&::handgrad::kernels::baseline::__VA_ARGS__>()
#endif
#define HANDGRAD_ROWS(name) []<class Number>() { return HANDGRAD_ACTIVE(name<Number>); }

#ifndef HANDGRAD_TARGET
namespace handgrad::kernels {

extern int active_target;  // 0: baseline, 1: avx2, 2: avx512; set before any other static initializer runs

/// The one of these functions that belongs to the instruction set in use.
template <auto... kFunctions>
__attribute__((always_inline)) inline auto active() {
  static constexpr decltype((kFunctions, ...)) all[] = {kFunctions...};
  return all[active_target];
}

/// The instruction set in use: "baseline", "avx2" or "avx512". The environment variable HANDGRAD_KERNELS overrides the
/// choice; a name that is unknown or that this CPU cannot run is ignored.
const char* target_name();

/// Switches to another instruction set; false when this build or this CPU does not have it. For tests, while no
/// other thread computes.
bool set_target(const char* name);

}  // namespace handgrad::kernels
#endif
