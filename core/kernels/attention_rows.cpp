// A head is worked off in blocks of query rows that see all their keys at once: a block's scores, up to the diagonal,
// fill a buffer of kQueryRows x length, softmax runs over its rows, and the product with the values follows. So memory
// grows with the length, not with its square. Operands are packed once per head: padded with zeros to whole vectors,
// keys transposed, so that every product reads one operand in vectors and broadcasts the other.
#include "handgrad/core/kernels/attention_rows.h"

#include "handgrad/core/kernels/attention_tile.h"
#include "handgrad/core/kernels/math.h"
#include "handgrad/core/kernels/philox.h"
#include "handgrad/core/kernels/transpose.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

constexpr int64_t kPad = 16;        // whole vectors of both types, whole tiles
constexpr int64_t kQueryRows = 32;  // in a block

HANDGRAD_INLINE int64_t padded(int64_t n) { return (n + kPad - 1) / kPad * kPad; }
// Rows a power of two apart would all fall into a few sets of the cache.
HANDGRAD_INLINE int64_t spread(int64_t n) { return padded(n) + kPad; }
HANDGRAD_INLINE int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// Hands out pieces of the scratch memory.
template <class T>
struct Workspace {
  T* next;
  T* take(int64_t elements) {
    T* const piece = next;
    next += elements;
    return piece;
  }
};

// Rows and columns of a head's matrices: [rows, columns] of the packed ones.
struct Extent {
  int64_t length, size, rows, columns, score_ld;
  HANDGRAD_INLINE Extent(int64_t length_, int64_t size_)
      : length(length_),
        size(size_),
        rows(padded(length_)),
        columns(padded(size_)),
        score_ld(spread(length_)) {}
};

template <class T>
void pack(T* to, const T* from, int64_t stride, const Extent& e) {
  for (int64_t i = 0; i < e.rows; ++i, to += e.columns) {
    for (int64_t j = 0; j < e.columns; j += kLanes<T>) {
      const int64_t left = e.size - j;
      Vec<T> x = set(T(0));
      if (i < e.length && left > 0) {
        const T* const row = from + i * stride + j;
        x = left >= kLanes<T> ? load(row) : load(row, first_lanes<T>(left));
      }
      store(to + j, x);
    }
  }
}

template <class T>
void unpack(T* to, int64_t stride, const T* from, const Extent& e) {
  for (int64_t i = 0; i < e.length; ++i) {
    each<T>(
        e.size, [&](int64_t j, auto lanes) __attribute__((always_inline)) {
          store(to + i * stride + j, load(from + i * e.columns + j), lanes);
        });
  }
}

// ---- Products. a: rows of a block; `first` is the block's first row in the head, `rows` a multiple of kTileRows.

// scores[r, j] = sum over d of a[r, d] * bt[d, j], for the columns up to the diagonal's tile.
template <class T>
void product_with_transpose(T* scores, const T* a, const T* bt, int64_t first, int64_t rows,
                            const Extent& e) {
  for (int64_t r = 0; r < rows; r += kTileRows) {
    for_tiles<T>(
        padded(first + r + kTileRows), [&](auto& tile, int64_t column) __attribute__((always_inline)) {
          tile.clear();
          tile.add({a + r * e.columns, e.columns, 1}, bt + column, e.score_ld, 0, e.size);
          tile.write(scores + r * e.score_ld + column, e.score_ld);
        });
  }
}

// y[r, :] = sum over j <= first + r of weights[r, j] * b[j, :], for the rows that exist.
template <class T>
void weighted_sums(T* y, int64_t y_stride, const T* weights, const T* b, int64_t first, int64_t rows,
                   const Extent& e) {
  for (int64_t r = 0; r < rows; r += kTileRows) {
    for_tiles<T>(
        e.columns, [&](auto& tile, int64_t column) __attribute__((always_inline)) {
          const Broadcasts<T> a{weights + r * e.score_ld, e.score_ld, 1};
          tile.clear();
          tile.add(a, b + column, e.columns, 0, first + r);
          tile.template add_triangle<Triangle::up_to_row>(a, b + column, e.columns, first + r);
          tile.write(y + r * y_stride + column, y_stride, e.length - first - r, e.size - column);
        });
  }
}

// y[j, :] += sum over r with first + r >= j of weights[r, j] * b[first + r, :]
template <class T>
void add_weighted_columns(T* y, const T* weights, const T* b, int64_t first, int64_t rows, const Extent& e) {
  for (int64_t j = 0; j < first + rows; j += kTileRows) {
    for_tiles<T>(
        e.columns, [&](auto& tile, int64_t column) __attribute__((always_inline)) {
          const Broadcasts<T> a{weights + j, 1, e.score_ld};
          const T* const from = b + first * e.columns + column;
          int64_t begin = 0;
          tile.read(y + j * e.columns + column, e.columns);
          if (j >= first) {
            tile.template add_triangle<Triangle::from_row>(a, from, e.columns, j - first);
            begin = j - first + kTileRows;
          }
          tile.add(a, from, e.columns, begin, rows);
          tile.write(y + j * e.columns + column, e.columns);
        });
  }
}

// ---- Rows of weights. A row has room for whole vectors, and lanes beyond its n numbers are ignored or zero.

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

template <class T>
int64_t forward_scratch(int64_t length, int64_t size) {
  const Extent e(length, size);
  return 2 * e.rows * e.columns + size * e.score_ld + kQueryRows * e.score_ld + e.score_ld + kPhiloxSlack;
}

template <class T>
void forward(const AttentionForward<T>& head) {
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

template <class T>
int64_t backward_scratch(int64_t length, int64_t size) {
  const Extent e(length, size);
  return 5 * e.rows * e.columns + 2 * size * e.score_ld + 2 * kQueryRows * e.score_ld + e.score_ld +
         kPhiloxSlack;
}

// The gradients of one block's scores from those of its weights, row by row. On return dp holds them, and p the weights
// that met the values, after dropout. Rows beyond the length are zeros when they come, since their dy is 0.
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

template <class T>
void backward(const AttentionBackward<T>& head) {
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

}  // namespace

template <class T>
AttentionRows<T> attention_rows() {
  return {
      .forward = forward<T>,
      .backward = backward<T>,
      .forward_scratch = forward_scratch<T>,
      .backward_scratch = backward_scratch<T>,
  };
}
template AttentionRows<float> attention_rows();
template AttentionRows<double> attention_rows();

}  // namespace handgrad::kernels::HANDGRAD_TARGET
