// All kernels of one instruction set, and the choice of the set at program start.
//
// A new family of kernels is: its header, its source (compiled for each instruction set, see kernels.cmake),
// a line here, two in target_table.cpp.
#pragma once

#include "handgrad/core/kernels/attention_rows.h"
#include "handgrad/core/kernels/dropout_rows.h"
#include "handgrad/core/kernels/elementwise.h"
#include "handgrad/core/kernels/gemm.h"
#include "handgrad/core/kernels/norm_rows.h"
#include "handgrad/core/kernels/peak.h"
#include "handgrad/core/kernels/pointwise.h"
#include "handgrad/core/kernels/reduce.h"
#include "handgrad/core/kernels/softmax_rows.h"
#include "handgrad/core/kernels/update_rows.h"

namespace handgrad::kernels {

template <class T>
struct Table {
  AttentionRows<T> attention_rows;
  DropoutRows<T> dropout_rows;
  Elementwise<T> elementwise;
  Gemm<T> gemm;
  NormRows<T> norm_rows;
  Pointwise<T> pointwise;
  Reduce<T> reduce;
  SoftmaxRows<T> softmax_rows;
  UpdateRows<T> update_rows;
  Peak<T> peak;
};

extern Table<float> active_float;  // filled before any other static initialiser runs, then never written
extern Table<double> active_double;

/// The kernels in use, for T = float or double: the best that this CPU has, or what the environment variable
/// HANDGRAD_KERNELS names (baseline, avx2, avx512); a name that is unknown or that this CPU cannot run is
/// ignored.
template <class T>
__attribute__((always_inline)) inline const Table<T>& table() {
  if constexpr (sizeof(T) == sizeof(float)) {
    return active_float;
  } else {
    return active_double;
  }
}

/// The instruction set in use: "baseline", "avx2" or "avx512".
const char* target_name();

/// The kernels of the set named, or nullptr when this build or this CPU does not have it. For tests.
template <class T>
const Table<T>* table_of(const char* target);

}  // namespace handgrad::kernels
