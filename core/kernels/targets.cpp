#include "handgrad/core/kernels/targets.h"

#include <cstdlib>
#include <cstring>

namespace handgrad::kernels {

constinit int active_target = 0;

namespace {

constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};

/// How many of kNames are built in and run on this CPU and operating system.
int usable_targets() {
#ifdef HANDGRAD_X86_TARGETS
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl"))
    return 2;
  return 3;
#else
  return 1;
#endif
}

// Earlier than every ordinary static initializer, so that those may already compute.
[[gnu::constructor(101)]] void choose() {
  active_target = usable_targets() - 1;
  if (const char* wanted = std::getenv("HANDGRAD_KERNELS"); wanted != nullptr) set_target(wanted);
}

}  // namespace

const char* target_name() { return kNames[active_target]; }

bool set_target(const char* name) {
  for (int i = 0; i < usable_targets(); ++i) {
    if (std::strcmp(kNames[i], name) != 0) continue;
    active_target = i;
    return true;
  }
  return false;
}

}  // namespace handgrad::kernels
