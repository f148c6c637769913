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
// Saved: qkv; up to T = 128 the probabilities p ("weights" [B, H, T, T]), beyond, they are computed again, to the same
// bits, so that memory grows with T and not with its square; the key of the dropout mask. Heads are computed in
// parallel, each by one thread. A row all of whose scores are -inf gives zeros and passes no gradient.
//
// A head is computed in blocks of query rows that see all their keys at once: a block's scores, up to the diagonal, fill
// a buffer of kQueryRows x T, softmax runs over its rows, and the product with the values follows.
#include "handgrad/core/kernels/attention.h"

#ifdef HANDGRAD_TARGET  // compiled once for each instruction set

#include "handgrad/core/kernels/attention_products.h"
#include "handgrad/core/kernels/math.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

constexpr int64_t kQueryRows = 32;  // in a block

// A row of weights has room for whole vectors; lanes beyond its n numbers are ignored or zero.

// s = softmax(s * scale); a row of nothing but -inf gives zeros.
template <class T>
HANDGRAD_INLINE void softmax_row(T* s, int64_t n, Vec<T> scale) {
  const Vec<T> lowest = set(static_cast<T>(-__builtin_inf()));
  Vec<T> largest = lowest;
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> x = select(lanes, load(s + i) * scale, lowest);
        largest = max(x, largest);
        store(s + i, x);
      });
  const T top = horizontal_max(largest);
  const Vec<T> offset = set(top == static_cast<T>(-__builtin_inf()) ? T(0) : top);
  Vec<T> sum = set(T(0));
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    const Vec<T> e = exp(load(s + i) - offset);  // lanes beyond n hold -inf and give 0
    sum = sum + e;
    store(s + i, e);
  }
  const T total = horizontal_sum(sum);
  const Vec<T> factor = set(total == 0 ? T(0) : T(1) / total);
  for (int64_t i = 0; i < n; i += kLanes<T>) store(s + i, load(s + i) * factor);
}

template <class T>
HANDGRAD_INLINE void drop_row(T* s, int64_t n, const uint32_t* bits, const DropMask& mask) {
  const T factor = static_cast<T>(mask.factor);
  for (int64_t i = 0; i < n; ++i) s[i] = bits[i] >= mask.threshold ? s[i] * factor : T(0);
}

// dp, the gradient of the weights of a row, becomes that of its scores: p * (dp - sum(dp * p)) * scale.
template <class T>
HANDGRAD_INLINE void softmax_row_backward(T* dp, const T* p, int64_t n, Vec<T> scale) {
  Vec<T> sum = set(T(0));
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        sum = sum + select(lanes, load(dp + i) * load(p + i), set(T(0)));
      });
  const Vec<T> dp_p = set(horizontal_sum(sum));
  for (int64_t i = 0; i < n; i += kLanes<T>) store(dp + i, load(p + i) * (load(dp + i) - dp_p) * scale);
}

// A row of the kept weights: zeros beyond n, which is the diagonal.
template <class T>
HANDGRAD_INLINE void keep_row(T* to, const T* s, int64_t n, int64_t length) {
  each<T>(
      length, [&](int64_t j, auto lanes)
                  __attribute__((always_inline)) { store(to + j, j < n ? load(s + j) : set(T(0)), lanes); });
}

template <class T>
HANDGRAD_INLINE void zero_row(T* row, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes<T>) store(row + i, set(T(0)));
}

// The random numbers of row i of the weights, drawn into `buffer`.
template <class T>
HANDGRAD_INLINE const uint32_t* bits_of_row(uint32_t* buffer, const AttentionHead<T>& head, int64_t i) {
  const uint64_t position = head.position + static_cast<uint64_t>(i * head.length);
  random_bits(buffer, static_cast<int64_t>(position % 4) + i + 1, position / 4, *head.drop);
  return buffer + position % 4;
}

// The probabilities of a block of rows, before dropout; rows beyond the length are zeros.
template <class T>
void probabilities(T* p, const T* q, const T* kt, int64_t first, int64_t rows, double scale,
                   const Extent& e) {
  product_with_transpose(p, q + first * e.columns, kt, first, rows, e);
  const Vec<T> factor = set(static_cast<T>(scale));
  for (int64_t r = 0; r < rows; ++r) {
    T* const row = p + r * e.score_ld;
    if (first + r < e.length) {
      softmax_row(row, first + r + 1, factor);
    } else {
      zero_row(row, e.rows);
    }
  }
}

// The same from what forward kept.
template <class T>
void load_probabilities(T* p, const T* weights, int64_t first, int64_t rows, const Extent& e) {
  for (int64_t r = 0; r < rows; ++r) {
    T* const row = p + r * e.score_ld;
    if (first + r < e.length) {
      each<T>(
          first + r + 1, [&](int64_t j, auto lanes) __attribute__((always_inline)) {
            store(row + j, load(weights + (first + r) * e.length + j, lanes));
          });
    } else {
      zero_row(row, e.rows);
    }
  }
}

// The gradients of one block's scores from those of its weights, row by row. On return dp holds them, and p the weights
// after dropout, as multiplied with the values. Rows beyond the length are zeros already, since their dy is 0.
template <class T>
void scores_backward(T* dp, T* p, int64_t first, int64_t rows, uint32_t* buffer, const AttentionHead<T>& head,
                     const Extent& e) {
  const Vec<T> scale = set(static_cast<T>(head.scale));
  for (int64_t r = 0; r < at_most(rows, e.length - first); ++r) {
    const int64_t n = first + r + 1;
    T* const row = p + r * e.score_ld;
    T* const drow = dp + r * e.score_ld;
    const uint32_t* const bits = head.drop != nullptr ? bits_of_row(buffer, head, n - 1) : nullptr;
    if (bits != nullptr) drop_row(drow, n, bits, *head.drop);
    softmax_row_backward(drow, row, n, scale);
    if (bits != nullptr) drop_row(row, n, bits, *head.drop);
  }
}

}  // namespace

int64_t attention_scratch(int64_t length, int64_t size) {
  const Extent e(length, size);
  return 2 * e.rows * e.columns + size * e.score_ld + kQueryRows * e.score_ld + e.score_ld + kPhiloxSlack;
}

template <class T>
void attention_forward(const AttentionForward<T>& head) {
  const Extent e(head.length, head.size);
  Workspace<T> scratch{head.scratch};
  T* const q = scratch.take(e.rows * e.columns);
  T* const v = scratch.take(e.rows * e.columns);
  T* const kt = scratch.take(e.size * e.score_ld);
  T* const p = scratch.take(kQueryRows * e.score_ld);
  auto* const bits = reinterpret_cast<uint32_t*>(scratch.take(e.score_ld + kPhiloxSlack));
  pack(q, head.q, head.stride, e);
  pack(v, head.v, head.stride, e);
  transpose(head.k, head.stride, e.length, e.size, kt, e.score_ld);
  for (int64_t first = 0; first < e.rows; first += kQueryRows) {
    const int64_t rows = at_most(kQueryRows, e.rows - first);
    probabilities(p, q, kt, first, rows, head.scale, e);
    const int64_t existing = at_most(rows, e.length - first);
    for (int64_t r = 0; r < existing; ++r) {
      const int64_t i = first + r;
      T* const row = p + r * e.score_ld;
      if (head.weights != nullptr) keep_row(head.weights + i * e.length, row, i + 1, e.length);
      if (head.drop != nullptr) drop_row(row, i + 1, bits_of_row(bits, head, i), *head.drop);
    }
    weighted_sums(head.y + first * head.y_stride, head.y_stride, p, v, first, rows, e);
  }
}

int64_t attention_backward_scratch(int64_t length, int64_t size) {
  const Extent e(length, size);
  return 5 * e.rows * e.columns + 2 * size * e.score_ld + 2 * kQueryRows * e.score_ld + e.score_ld +
         kPhiloxSlack;
}

template <class T>
void attention_backward(const AttentionBackward<T>& head) {
  const Extent e(head.length, head.size);
  Workspace<T> scratch{head.scratch};
  T* const q = scratch.take(e.rows * e.columns);
  T* const k = scratch.take(e.rows * e.columns);
  T* const dy = scratch.take(e.rows * e.columns);
  T* const dk = scratch.take(e.rows * e.columns);
  T* const dv = scratch.take(e.rows * e.columns);
  T* const kt = scratch.take(e.size * e.score_ld);
  T* const vt = scratch.take(e.size * e.score_ld);
  T* const p = scratch.take(kQueryRows * e.score_ld);
  T* const dp = scratch.take(kQueryRows * e.score_ld);
  auto* const bits = reinterpret_cast<uint32_t*>(scratch.take(e.score_ld + kPhiloxSlack));
  pack(q, head.q, head.stride, e);
  pack(k, head.k, head.stride, e);
  pack(dy, head.dy, head.dy_stride, e);
  transpose(head.v, head.stride, e.length, e.size, vt, e.score_ld);
  if (head.weights == nullptr) transpose(head.k, head.stride, e.length, e.size, kt, e.score_ld);
  zero_row(dk, e.rows * e.columns);
  zero_row(dv, e.rows * e.columns);
  for (int64_t first = 0; first < e.rows; first += kQueryRows) {
    const int64_t rows = at_most(kQueryRows, e.rows - first);
    if (head.weights == nullptr) {
      probabilities(p, q, kt, first, rows, head.scale, e);
    } else {
      load_probabilities(p, head.weights, first, rows, e);
    }
    product_with_transpose(dp, dy + first * e.columns, vt, first, rows, e);
    scores_backward(dp, p, first, rows, bits, head, e);
    weighted_sums(head.dq + first * head.stride, head.stride, dp, k, first, rows, e);
    add_weighted_columns(dk, dp, q, first, rows, e);
    add_weighted_columns(dv, p, dy, first, rows, e);
  }
  unpack(head.dk, head.stride, dk, e);
  unpack(head.dv, head.stride, dv, e);
}

template void attention_forward(const AttentionForward<float>&);
template void attention_forward(const AttentionForward<double>&);
template void attention_backward(const AttentionBackward<float>&);
template void attention_backward(const AttentionBackward<double>&);

}  // namespace handgrad::kernels::HANDGRAD_TARGET

#else

#include <cmath>

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

constexpr std::int64_t kLongestSaved = 128;

void check(const char* op, const Tensor& qkv, int heads, double drop_rate) {
  checks::common_type(op, {{"qkv", qkv}});
  if (qkv.rank() != 3)
    checks::throw_shape(op, "qkv must have three dimensions, [B, T, 3C], got " + qkv.shape().text(),
                        {{"qkv", qkv}});
  if (heads < 1 || qkv.size(2) % (3 * std::int64_t{heads}) != 0)
    checks::throw_shape(
        op,
        "heads must be at least 1 and 3 * heads divide the last dimension of qkv, got heads = " +
            std::to_string(heads),
        {{"qkv", qkv}});
  checks::value(op, drop_rate >= 0 && drop_rate < 1, "drop_rate must lie in 0 <= drop_rate < 1", drop_rate,
                {{"qkv", qkv}});
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
  const auto run = HANDGRAD_ACTIVE(attention_forward<T>);
  const std::int64_t elements = HANDGRAD_ACTIVE(attention_scratch)(s.T, s.D);
  parallel_ranges(s.B * s.H, s.heads_per_chunk(2), [&](std::int64_t begin, std::int64_t end) {
    const Scratch scratch(static_cast<std::size_t>(elements) * sizeof(T));
    for (std::int64_t head = begin; head < end; ++head)
      run({head_of(in, s, head, drop, scratch.as<T>()), out + head / s.H * s.T * s.C + head % s.H * s.D, s.C,
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
  const auto run = HANDGRAD_ACTIVE(attention_backward<T>);
  const std::int64_t elements = HANDGRAD_ACTIVE(attention_backward_scratch)(s.T, s.D);
  parallel_ranges(s.B * s.H, s.heads_per_chunk(5), [&](std::int64_t begin, std::int64_t end) {
    const Scratch scratch(static_cast<std::size_t>(elements) * sizeof(T));
    for (std::int64_t head = begin; head < end; ++head) {
      const kernels::AttentionHead<T> operands = head_of(in, s, head, drop, scratch.as<T>());
      T* const dq = out + (operands.q - in);
      run({operands, upstream + head / s.H * s.T * s.C + head % s.H * s.D, s.C,
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

#endif
