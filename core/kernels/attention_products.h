// The matrix products of causal attention. Operands are packed once per head: padded with zeros to whole vectors, keys
// transposed, so that every product reads one operand in vectors and broadcasts the other. A product is computed in
// tiles of registers, with the triangle that causal attention needs on the diagonal.
#pragma once

#include "handgrad/core/kernels/transpose.h"
#include "handgrad/core/kernels/vec.h"

namespace handgrad::kernels::HANDGRAD_TARGET {

// The tile's sums, a row of b and one element of a fit the registers of every instruction set.
inline constexpr int kTileRows = kPieces<float> == 1 ? 8 : kPieces<float> == 2 ? 4 : 2;
inline constexpr int kTileVectors = kPieces<float> == 1 ? 2 : 1;

// An operand of broadcasts: element (row, k) of the tile's rows is data[row * row_step + k * k_step].
template <class T>
struct Broadcasts {
  const T* data;
  int64_t row_step;
  int64_t k_step;
};

enum class Triangle {
  up_to_row,  // row r takes the terms k <= r
  from_row    // row r takes the terms k >= r
};

// sum[r] is row r of the tile. Every element is one chain of fused multiply-adds in the order of k.
template <class T, int Vectors>
struct AttentionTile {
  Vec<T> sum[kTileRows][Vectors];

  HANDGRAD_INLINE void clear() {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sum[r][v] = set(T(0));
    }
  }

  HANDGRAD_INLINE void read(const T* from, int64_t ld) {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sum[r][v] = load(from + r * ld + v * kLanes<T>);
    }
  }

  HANDGRAD_INLINE void write(T* to, int64_t ld) const {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) store(to + r * ld + v * kLanes<T>, sum[r][v]);
    }
  }

  // Only the first `rows` rows and `columns` columns.
  HANDGRAD_INLINE void write(T* to, int64_t ld, int64_t rows, int64_t columns) const {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
      if (r >= rows) continue;
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) {
        const int64_t left = columns - v * kLanes<T>;
        if (left >= kLanes<T>) {
          store(to + r * ld + v * kLanes<T>, sum[r][v]);
        } else {
          store(to + r * ld + v * kLanes<T>, sum[r][v], first_lanes<T>(left < 0 ? 0 : left));
        }
      }
    }
  }

  // sum[r] += a(r, k) * b[k] for begin <= k < end; rows of b are ldb apart.
  HANDGRAD_INLINE void add(Broadcasts<T> a, const T* b, int64_t ldb, int64_t begin, int64_t end) {
    const T* element = a.data + begin * a.k_step;
    const T* row = b + begin * ldb;
    for (int64_t k = begin; k < end; ++k, element += a.k_step, row += ldb) {
      Vec<T> factor[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) factor[v] = load(row + v * kLanes<T>);
#pragma GCC unroll 8
      for (int r = 0; r < kTileRows; ++r) add_to_row(r, element[r * a.row_step], factor);
    }
  }

  // The square on the diagonal, begin <= k < begin + kTileRows, with the terms of one triangle only. Terms outside of
  // it are not multiplied by 0 but left out: 0 * NaN would carry a NaN to rows that must not see it.
  template <Triangle kKeep>
  HANDGRAD_INLINE void add_triangle(Broadcasts<T> a, const T* b, int64_t ldb, int64_t begin) {
    const T* element = a.data + begin * a.k_step;
    const T* row = b + begin * ldb;
#pragma GCC unroll 8
    for (int k = 0; k < kTileRows; ++k) {
      Vec<T> factor[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) factor[v] = load(row + k * ldb + v * kLanes<T>);
#pragma GCC unroll 8
      for (int r = 0; r < kTileRows; ++r) {
        if (kKeep == Triangle::up_to_row ? k <= r : k >= r) {
          add_to_row(r, element[r * a.row_step + k * a.k_step], factor);
        }
      }
    }
  }

 private:
  HANDGRAD_INLINE void add_to_row(int r, T element, const Vec<T> (&factor)[Vectors]) {
    const Vec<T> broadcast = set(element);
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) sum[r][v] = fma(broadcast, factor[v], sum[r][v]);
  }
};

// Calls body(tile, column) for tiles that cover `width` columns, a multiple of the lanes.
template <class T, class Body>
HANDGRAD_INLINE void for_tiles(int64_t width, const Body& body) {
  int64_t column = 0;
  if constexpr (kTileVectors == 2) {
    for (; column + 2 * kLanes<T> <= width; column += 2 * kLanes<T>) {
      AttentionTile<T, 2> tile;
      body(tile, column);
    }
  }
  for (; column < width; column += kLanes<T>) {
    AttentionTile<T, 1> tile;
    body(tile, column);
  }
}

// ---- Packing

inline constexpr int64_t kPad = 16;  // whole vectors of both types, whole tiles

HANDGRAD_INLINE int64_t padded(int64_t n) { return (n + kPad - 1) / kPad * kPad; }
// Rows a power of two apart would all fall into a few sets of the cache.
HANDGRAD_INLINE int64_t padded_stride(int64_t n) { return padded(n) + kPad; }
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
        score_ld(padded_stride(length_)) {}
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

}  // namespace handgrad::kernels::HANDGRAD_TARGET
