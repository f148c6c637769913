// Rows of layer_norm and rms_norm. Statistics are taken, and kept, in double: as float32 the mean of a row near a
// million would be off by up to 0.03, and every normalized number with it.
#pragma once

#include <stdint.h>

namespace handgrad::kernels {

/// What a norm reads and writes, from the first row on; all dense. `mean` and `rstd` have one number for each row.
/// rms_norm has no shift and no mean.
template <class T>
struct NormForward {
  T* y;
  double* mean;  // nullptr: not kept; so for rstd
  double* rstd;
  const T* x;
  const T* scale;
  const T* shift;
  int64_t width;
  double eps;
};

/// dx is written, or added to when `add` is set, unless it is nullptr. The gradients of scale and shift are added to
/// rows of doubles with room for whole vectors (see padded_width), unless those are nullptr.
template <class T>
struct NormBackward {
  T* dx;
  bool add;
  double* dscale;
  double* dshift;
  const T* dy;
  const T* x;
  const T* scale;
  const double* mean;
  const double* rstd;
  int64_t width;
};

/// Each works on the rows begin .. end - 1.
template <class T>
struct NormRows {
  void (*layer_norm)(const NormForward<T>& norm, int64_t begin, int64_t end);
  void (*layer_norm_backward)(const NormBackward<T>& norm, int64_t begin, int64_t end);
  void (*rms_norm)(const NormForward<T>& norm, int64_t begin, int64_t end);
  void (*rms_norm_backward)(const NormBackward<T>& norm, int64_t begin, int64_t end);
};

}  // namespace handgrad::kernels
