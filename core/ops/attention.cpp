// causal_attention: each position mixes the values of itself and of those before it, by how well its query matches
// their keys. For every head, with rows i and j of T and D = C / heads:
//
//   score[i, j] = q[i] . k[j] / sqrt(D)      for j <= i, else -inf
//   p[i, :] = softmax(score[i, :])           w = dropout(p)          y[i] = sum_j w[i, j] v[j]
//
// Derivative, from dy:
//
//   dw[i, j] = dy[i] . v[j]                  dv[j] = sum_{i >= j} w[i, j] dy[i]
//   dp = dropout(dw), by the same mask       ds = p * (dp - sum_j(dp * p)) / sqrt(D)
//   dq[i] = sum_{j <= i} ds[i, j] k[j]       dk[j] = sum_{i >= j} ds[i, j] q[i]
//
// Saved: qkv; up to T = 128 the probabilities p ("weights" [B, H, T, T]), beyond they are worked out again, to the same
// bits, so that memory grows with T and not with its square; the key of the dropout mask. Heads are computed in
// parallel, each by one thread. A row all of whose scores are -inf gives zeros and passes no gradient.
#include <cmath>

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/kernels/table.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/drop_mask.h"
#include "handgrad/core/ops/value_error.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

constexpr std::int64_t kLongestSaved = 128;

void check(const char* op, const Tensor& qkv, int heads, double drop_rate) {
  checks::common_type(op, {{"qkv", qkv}});
  if (qkv.rank() != 3)
    throw ShapeError(op, "qkv must have three dimensions, [B, T, 3C], got " + qkv.shape().text(),
                     {{"qkv", qkv.shape()}});
  if (heads < 1 || qkv.size(2) % (3 * std::int64_t{heads}) != 0)
    throw ShapeError(op,
                     "heads must be at least 1 and 3 * heads divide the last dimension of qkv, got heads = " +
                         std::to_string(heads),
                     {{"qkv", qkv.shape()}});
  if (!(drop_rate >= 0 && drop_rate < 1))
    refuse_value(op, "drop_rate must lie in 0 <= drop_rate < 1", drop_rate, {{"qkv", qkv.shape()}});
}

/// The sizes of one call, and how its heads are cut into chunks for the workers.
struct Sizes {
  Sizes(const Shape& qkv, std::int64_t head_count)
      : B(qkv[0]), T(qkv[1]), C(qkv[2] / 3), H(head_count), D(C / H) {}
  std::int64_t B, T, C, H, D;

  double scale() const { return 1 / std::sqrt(static_cast<double>(D)); }
  std::int64_t heads_per_chunk(double products) const {
    const double t = static_cast<double>(T), d = static_cast<double>(D);
    return grain_for(100 + 2 * t * d / 8 + t * t * (products * d / 40 + 0.1));
  }
};

/// One head's operands; `first` is the position of its first query in qkv.
template <class T>
kernels::AttentionHead<T> head_of(const T* qkv, const Sizes& s, std::int64_t head,
                                  const kernels::DropMask* drop, T* scratch) {
  const T* q = qkv + head / s.H * s.T * 3 * s.C + head % s.H * s.D;
  return {
      .q = q,
      .k = q + s.C,
      .v = q + 2 * s.C,
      .stride = 3 * s.C,
      .length = s.T,
      .size = s.D,
      .scale = s.scale(),
      .drop = drop,
      .position = static_cast<std::uint64_t>(head * s.T * s.T),
      .scratch = scratch,
  };
}

template <class T>
void forward(const Array& qkv, const Sizes& s, const kernels::DropMask* drop, Array& y, Array& weights) {
  const T* in = qkv.data<T>();
  T* out = y.mutable_data<T>();
  T* kept = weights.defined() ? weights.mutable_data<T>() : nullptr;
  const auto& kernel = kernels::table<T>().attention_rows;
  parallel_ranges(s.B * s.H, s.heads_per_chunk(2), [&](std::int64_t begin, std::int64_t end) {
    const Scratch scratch(static_cast<std::size_t>(kernel.forward_scratch(s.T, s.D)) * sizeof(T));
    for (std::int64_t head = begin; head < end; ++head)
      kernel.forward({head_of(in, s, head, drop, scratch.as<T>()),
                      out + head / s.H * s.T * s.C + head % s.H * s.D, s.C,
                      kept == nullptr ? nullptr : kept + head * s.T * s.T});
  });
}

template <class T>
Array backward(const Node& node, const Array& dy) {
  const Array& qkv = node.saved("qkv");
  const Sizes s(qkv.shape(), static_cast<std::int64_t>(node.number("heads")));
  const double drop_rate = node.number("drop_rate");
  kernels::DropMask mask{};
  if (drop_rate > 0) mask = drop_mask(random_key_of(node.saved("key")), drop_rate);
  const kernels::DropMask* drop = drop_rate > 0 ? &mask : nullptr;

  Array dqkv(qkv.shape(), qkv.dtype());
  T* out = dqkv.mutable_data<T>();
  const T* in = qkv.data<T>();
  const T* upstream = dy.data<T>();
  const T* kept = node.has_saved("weights") ? node.saved("weights").data<T>() : nullptr;
  const auto& kernel = kernels::table<T>().attention_rows;
  parallel_ranges(s.B * s.H, s.heads_per_chunk(5), [&](std::int64_t begin, std::int64_t end) {
    const Scratch scratch(static_cast<std::size_t>(kernel.backward_scratch(s.T, s.D)) * sizeof(T));
    for (std::int64_t head = begin; head < end; ++head) {
      const kernels::AttentionHead<T> operands = head_of(in, s, head, drop, scratch.as<T>());
      T* const dq = out + (operands.q - in);
      kernel.backward({operands, upstream + head / s.H * s.T * s.C + head % s.H * s.D, s.C,
                       kept == nullptr ? nullptr : kept + head * s.T * s.T, dq, dq + s.C, dq + 2 * s.C});
    }
  });
  return dqkv;
}

void attention_backward(const Node& node, const Array& dy, GradSink& sink) {
  dispatch(dy.dtype(), [&](auto zero) { sink.move(0, backward<decltype(zero)>(node, dy)); });
}

}  // namespace

Tensor causal_attention(const Tensor& qkv, int heads, double drop_rate) {
  check("causal_attention", qkv, heads, drop_rate);
  const Sizes s(qkv.shape(), heads);
  Array y(qkv.shape().with_last(s.C), qkv.dtype()), weights, key;
  if (s.T <= kLongestSaved && will_record({qkv})) weights = Array({s.B, s.H, s.T, s.T}, qkv.dtype());
  kernels::DropMask mask{};
  if (drop_rate > 0) {
    const RandomKey drawn = next_random_key();
    key = to_array(drawn);
    mask = drop_mask(drawn, drop_rate);
  }
  dispatch(qkv.dtype(), [&](auto zero) {
    forward<decltype(zero)>(qkv.array(), s, drop_rate > 0 ? &mask : nullptr, y, weights);
  });
  return record("causal_attention", std::move(y), {qkv},
                {{"qkv", qkv.array()}, {"weights", weights, weights.defined()}, {"key", key, key.defined()}},
                attention_backward, {{"heads", static_cast<double>(heads)}, {"drop_rate", drop_rate}});
}

Tensor causal_attention_composed(const Tensor& qkv, int heads, double drop_rate) {
  check("causal_attention_composed", qkv, heads, drop_rate);
  const Sizes s(qkv.shape(), heads);
  const auto split_heads = [&](std::int64_t part) {  // [B, T, 3C] -> [B, H, T, D]
    return permute(reshape(slice(qkv, 2, part * s.C, (part + 1) * s.C), {s.B, s.T, s.H, s.D}), {0, 2, 1, 3});
  };
  const Tensor queries = split_heads(0), keys = split_heads(1), values = split_heads(2);
  const Tensor scores = matmul(queries, keys, Transpose::no, Transpose::yes);
  const Tensor future = triu(Tensor::ones({s.T, s.T}, qkv.dtype()), 1);
  const Tensor masked = masked_fill(scores, future, -INFINITY);
  const Tensor weights = dropout(softmax(masked / std::sqrt(static_cast<double>(s.D))), drop_rate);
  return reshape(permute(matmul(weights, values), {0, 2, 1, 3}), {s.B, s.T, s.C});
}

}  // namespace handgrad
