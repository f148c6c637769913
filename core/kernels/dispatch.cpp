// Picks the instruction set at program start. Compiled with the flags of ordinary code.
#include <cstdlib>
#include <cstring>

#include "handgrad/core/kernels/table.h"

namespace handgrad::kernels {

namespace baseline {
template <class T>
Table<T> target_table();
}
namespace avx2 {
template <class T>
Table<T> target_table();
}
namespace avx512 {
template <class T>
Table<T> target_table();
}

constinit Table<float> active_float{};
constinit Table<double> active_double{};

namespace {

struct Target {
  const char* name;
  bool usable;  // built in, and this CPU and operating system can run it
  Table<float> of_float;
  Table<double> of_double;
};

constinit Target targets[] = {
    {"baseline", false, {}, {}}, {"avx2", false, {}, {}}, {"avx512", false, {}, {}}};
constinit const Target* active = nullptr;

Target* find(const char* name) {
  for (Target& target : targets) {
    if (target.usable && std::strcmp(target.name, name) == 0) return &target;
  }
  return nullptr;
}

void fill_targets() {
  targets[0] = {"baseline", true, baseline::target_table<float>(), baseline::target_table<double>()};
#ifdef HANDGRAD_X86_TARGETS
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return;
  targets[1] = {"avx2", true, avx2::target_table<float>(), avx2::target_table<double>()};
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) {
    return;
  }
  targets[2] = {"avx512", true, avx512::target_table<float>(), avx512::target_table<double>()};
#endif
}

// Earlier than every ordinary static initialiser, so that those may already compute.
[[gnu::constructor(101)]] void choose() {
  fill_targets();
  for (const Target& target : targets) {
    if (target.usable) active = &target;
  }
  if (const char* wanted = std::getenv("HANDGRAD_KERNELS"); wanted != nullptr) {
    if (const Target* target = find(wanted); target != nullptr) active = target;
  }
  active_float = active->of_float;
  active_double = active->of_double;
}

}  // namespace

const char* target_name() { return active->name; }

template <>
const Table<float>* table_of(const char* target) {
  const Target* found = find(target);
  return found != nullptr ? &found->of_float : nullptr;
}
template <>
const Table<double>* table_of(const char* target) {
  const Target* found = find(target);
  return found != nullptr ? &found->of_double : nullptr;
}

}  // namespace handgrad::kernels
