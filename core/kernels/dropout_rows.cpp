#include "handgrad/core/kernels/dropout_rows.h"

#include "handgrad/core/kernels/philox.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

template <class T>
void dropout(T* y, bool add, const T* x, int64_t begin, int64_t end, const DropMask& mask) {
  constexpr int64_t kBlock = 512;
  uint32_t bits[kBlock + kPhiloxSlack];
  const T factor = static_cast<T>(mask.factor);
  for (int64_t first = begin; first < end; first += kBlock) {
    const int64_t n = end - first < kBlock ? end - first : kBlock;
    random_bits(bits, n, static_cast<uint64_t>(first) / 4, mask);
    for (int64_t i = 0; i < n; ++i) {
      const T kept = bits[i] >= mask.threshold ? x[first + i] * factor : T(0);
      y[first + i] = add ? y[first + i] + kept : kept;
    }
  }
}

}  // namespace

template <class T>
DropoutRows<T> dropout_rows() {
  return {
      .dropout = dropout<T>,
  };
}
template DropoutRows<float> dropout_rows();
template DropoutRows<double> dropout_rows();

}  // namespace handgrad::kernels::HANDGRAD_TARGET
