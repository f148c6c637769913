// Rows of softmax, of its logarithm, and of the cross-entropy of logits. All operands are dense.
#pragma once

#include <stdint.h>

namespace handgrad::kernels {

/// Logits [rows, width] and what their gradient needs: the logarithm of each row's sum of exponentials, in double
/// (as float32 its rounding would be a relative error of every probability), and the targets.
template <class T>
struct CrossEntropyBackward {
  T* dlogits;
  bool add;  // to what is there
  const T* logits;
  const double* log_sum;
  const int32_t* targets;  // 0 .. width - 1, or ignored
  int32_t ignored;
  T factor;  // d loss / d (loss of one row)
  int64_t width;
};

template <class T>
struct SoftmaxRows {
  /// y = exp(x - max) / sum; a row of nothing but -inf gives zeros. y may be x.
  void (*softmax)(T* y, const T* x, int64_t rows, int64_t width);
  /// dx = y * (dy - sum(dy * y)), or += when `add` is set. dx may be dy.
  void (*softmax_backward)(T* dx, bool add, const T* dy, const T* y, int64_t rows, int64_t width);

  /// For each row its largest element, and the sum of exp(x - largest). A row of nothing but -inf: -inf and 0.
  void (*sum_exp)(double* largest, double* sum, const T* x, int64_t rows, int64_t width);
  /// y = x - log_sum; a row with log_sum -inf stays as it is. y may be x.
  void (*log_softmax)(T* y, const T* x, const double* log_sum, int64_t rows, int64_t width);
  /// dx = dy - exp(y) * sum(dy), or += when `add` is set; 0 in a row of nothing but -inf. dx may be dy.
  void (*log_softmax_backward)(T* dx, bool add, const T* dy, const T* y, int64_t rows, int64_t width);

  /// (softmax(logits) - one-hot of the target) * factor for the rows begin .. end - 1; 0 in rows that are ignored.
  void (*cross_entropy_backward)(const CrossEntropyBackward<T>& loss, int64_t begin, int64_t end);
};

}  // namespace handgrad::kernels
