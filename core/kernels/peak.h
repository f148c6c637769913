// The most multiply-adds that a core can do: what measured speeds are compared with.
#pragma once

#include "handgrad/core/kernels/targets.h"

/// Does `turns` rounds of multiply-adds that wait for nothing but each other's units, and returns how many
/// floating-point operations those were (a multiply-add is two). `sink` gets a number that depends on all of them.
HANDGRAD_EACH_TARGET(template <class T> double multiply_adds(int64_t turns, T* sink);)
