// Causal attention of one head; defined in core/ops/attention.cpp.
#pragma once

#include "handgrad/core/kernels/drop_mask.h"
#include "handgrad/core/kernels/targets.h"

namespace handgrad::kernels {

/// One head. Queries, keys and values are rows of `size` numbers, `stride` apart; row i looks at the rows 0 .. i. The
/// bits of a row do not depend on the rows after it.
template <class T>
struct AttentionHead {
  const T* q;
  const T* k;
  const T* v;
  int64_t stride;
  int64_t length;
  int64_t size;
  double scale;          // of the scores: 1 / sqrt(size)
  const DropMask* drop;  // nullptr: no dropout
  uint64_t position;     // of the random number of weight (0, 0); weight (i, j) has position + i * length + j
  T* scratch;            // as many elements as *_scratch says, aligned to 64 bytes
};

template <class T>
struct AttentionForward : AttentionHead<T> {
  T* y;  // rows y_stride apart
  int64_t y_stride;
  T* weights;  // [length, length], before dropout; nullptr: not kept
};

template <class T>
struct AttentionBackward : AttentionHead<T> {
  const T* dy;  // rows dy_stride apart
  int64_t dy_stride;
  const T* weights;  // as forward kept them; nullptr: computed again, to the same bits
  T* dq;             // written; rows `stride` apart, so for dk and dv
  T* dk;
  T* dv;
};

}  // namespace handgrad::kernels

HANDGRAD_EACH_TARGET(template <class T> void attention_forward(const AttentionForward<T>& head);
                     template <class T> void attention_backward(const AttentionBackward<T>& head);
                     // Elements of scratch memory for heads of this length and size.
                     int64_t attention_scratch(int64_t length, int64_t size);
                     int64_t attention_backward_scratch(int64_t length, int64_t size);)
