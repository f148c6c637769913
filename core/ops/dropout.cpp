// dropout: each element is 0 with probability `rate`, else divided by 1 - rate, so that its expectation stays.
//
//   y = stays * x / (1 - rate)        dx = stays * dy / (1 - rate)
//
// Which elements stay is decided by the random number at their position under the operation's key (core/random.h).
// Saved: the key, 16 bytes; backward draws the mask again, which is faster than reading it from memory.
#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/kernels/table.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/drop_mask.h"
#include "handgrad/core/ops/value_error.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

/// y = x where it stays, scaled, or += ; both forward and, with dy for x, backward.
void drop(Array& y, bool add, const Array& x, const RandomKey& key, double rate) {
  const kernels::DropMask mask = drop_mask(key, rate);
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto& kernel = kernels::table<T>().dropout_rows.dropout;
    T* to = y.mutable_data<T>();
    const T* from = x.data<T>();
    parallel_ranges(x.numel(), grain_for(0.5) / 4 * 4,
                    [&](std::int64_t begin, std::int64_t end) { kernel(to, add, from, begin, end, mask); });
  });
}

void dropout_backward(const Node& node, const Array& dy, GradSink& sink) {
  const GradSink::Target dx = sink.into(0);
  drop(dx.array, dx.add, dy, random_key_of(node.saved("key")), node.number("rate"));
}

}  // namespace

Tensor dropout(const Tensor& x, double rate) {
  checks::common_type("dropout", {{"x", x}});
  if (!(rate >= 0 && rate < 1))
    refuse_value("dropout", "rate must lie in 0 <= rate < 1", rate, {{"x", x.shape()}});
  if (rate == 0) return x;
  const RandomKey key = next_random_key();
  Array y(x.shape(), x.dtype());
  drop(y, false, x.array(), key, rate);
  return record("dropout", std::move(y), {x}, {{"key", to_array(key)}}, dropout_backward, {{"rate", rate}});
}

Tensor detach(const Tensor& x) { return x.detach(); }

}  // namespace handgrad
