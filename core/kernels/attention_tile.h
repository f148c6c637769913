// A tile of a small matrix product in registers, with the triangle that causal attention needs on the diagonal.
#pragma once

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

}  // namespace handgrad::kernels::HANDGRAD_TARGET
