// The table of one instruction set; compiled, like the kernels themselves, once for each.
#include "handgrad/core/kernels/table.h"

namespace handgrad::kernels::HANDGRAD_TARGET {

// Each is defined at the end of its family's source.
template <class T>
AttentionRows<T> attention_rows();
template <class T>
DropoutRows<T> dropout_rows();
template <class T>
Elementwise<T> elementwise();
template <class T>
Gemm<T> gemm();
template <class T>
NormRows<T> norm_rows();
template <class T>
Pointwise<T> pointwise();
template <class T>
Reduce<T> reduce();
template <class T>
SoftmaxRows<T> softmax_rows();
template <class T>
UpdateRows<T> update_rows();
template <class T>
Peak<T> peak();

template <class T>
Table<T> target_table() {
  return {
      .attention_rows = attention_rows<T>(),
      .dropout_rows = dropout_rows<T>(),
      .elementwise = elementwise<T>(),
      .gemm = gemm<T>(),
      .norm_rows = norm_rows<T>(),
      .pointwise = pointwise<T>(),
      .reduce = reduce<T>(),
      .softmax_rows = softmax_rows<T>(),
      .update_rows = update_rows<T>(),
      .peak = peak<T>(),
  };
}
template Table<float> target_table();
template Table<double> target_table();

}  // namespace handgrad::kernels::HANDGRAD_TARGET
