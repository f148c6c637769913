// dropout: each element is 0 with probability `rate`, else divided by 1 - rate, so that the expectation does not change.
//
//   y = stays * x / (1 - rate)        dx = stays * dy / (1 - rate)
//
// Which elements stay is decided by the random number at their position under the operation's key (core/random.h).
// Saved: the key, 16 bytes; backward draws the mask again, which is faster than reading it from memory.
#include "handgrad/core/kernels/drop_mask.h"
#include "handgrad/core/kernels/targets.h"

// y[i] = stays(i) ? x[i] * factor : 0 for begin <= i < end, or += when `add` is set; begin is a multiple of 4, i the
// position of the random number. y may be x.
HANDGRAD_EACH_TARGET(template <class T>
                     void drop(T* y, bool add, const T* x, int64_t begin, int64_t end, const DropMask& mask);)

#ifdef HANDGRAD_TARGET  // compiled once for each instruction set

namespace handgrad::kernels::HANDGRAD_TARGET {

template <class T>
void drop(T* y, bool add, const T* x, int64_t begin, int64_t end, const DropMask& mask) {
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

template void drop(float*, bool, const float*, int64_t, int64_t, const DropMask&);
template void drop(double*, bool, const double*, int64_t, int64_t, const DropMask&);

}  // namespace handgrad::kernels::HANDGRAD_TARGET

#else

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

/// y = x where it stays, scaled, or += ; both forward and, with dy for x, backward.
void drop(Array& y, bool add, const Array& x, const RandomKey& key, double rate) {
  const kernels::DropMask mask = drop_mask(key, rate);
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto run = HANDGRAD_ACTIVE(drop<T>);
    T* to = y.mutable_data<T>();
    const T* from = x.data<T>();
    parallel_ranges(x.numel(), grain_for(0.5) / 4 * 4,
                    [&](std::int64_t begin, std::int64_t end) { run(to, add, from, begin, end, mask); });
  });
}

void dropout_backward(const Node& node, const Array& dy, GradSink& sink) {
  const GradSink::Target dx = sink.into(0);
  drop(dx.array, dx.add, dy, random_key_of(node.saved("key")), node.number("rate"));
}

}  // namespace

Tensor dropout(const Tensor& x, double rate) {
  checks::common_type("dropout", {{"x", x}});
  checks::value("dropout", rate >= 0 && rate < 1, "rate must lie in 0 <= rate < 1", rate, {{"x", x}});
  if (rate == 0) return x;
  const RandomKey key = next_random_key();
  Array y(x.shape(), x.dtype());
  drop(y, false, x.array(), key, rate);
  return record("dropout", std::move(y), {x}, {{"key", to_array(key)}}, dropout_backward, {{"rate", rate}});
}

Tensor detach(const Tensor& x) { return x.detach(); }

}  // namespace handgrad

#endif
