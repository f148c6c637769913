// C is cut into panels of columns as wide as two vectors. For each panel, kDepth rows of op(B) at a time are
// copied into a buffer that stays in the first-level cache (transposed there when B is stored so), and every
// group of rows of op(A) runs over it with a tile of C in registers. op(A) is read where it lies. Cutting k
// continues the chains through C, which changes no bit.
#include "handgrad/core/kernels/gemm.h"

#include "handgrad/core/kernels/transpose.h"
#include "handgrad/core/kernels/vec.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

// Registers hold kTileRows x kTileVectors vectors of C, a row of B and one element of A.
#if defined(__AVX512F__)
constexpr int kTileRows = 12;
constexpr int kTileVectors = 2;
#elif defined(__AVX2__) || defined(__aarch64__)
constexpr int kTileRows = 6;
constexpr int kTileVectors = 1;
#else
constexpr int kTileRows = 2;
constexpr int kTileVectors = 1;
#endif

template <class T>
constexpr int64_t kPanel = kTileVectors* kLanes<T>;

// So much of k at a time that a panel of B (32 KiB) and the rows of A that meet it share the first-level cache.
template <class T>
constexpr int64_t kDepth = 1024 / static_cast<int64_t>(sizeof(T));

// What a tile works on: op(A) from its first row, op(B) from its first column, C at its corner.
template <class T>
struct Span {
  int64_t k;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T* c;
  int64_t ldc;
  int64_t columns;  // of C that exist; the rest of the panel is neither read nor written
  bool from_c;      // chains start from C instead of 0
  const T* bias;    // at the tile's first column, or nullptr
};

// Rows x Vectors vectors of C. AlongK: op(A) is stored by rows, the next k is the next element. Direct: op(B)
// is read where it lies, so its last vector needs the mask too.
template <class T, int Rows, int Vectors, bool AlongK, bool Direct>
void tile(const Span<T>& s) {
  constexpr int64_t kLane = kLanes<T>;
  constexpr int kLast = Vectors - 1;
  const Mask<T> edge = first_lanes<T>(s.columns - kLast * kLane);
  const int64_t ldc = s.ldc;

  Vec<T> acc[Rows][Vectors];
  T* c = s.c;
  if (s.from_c) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r, c += ldc) {
      if constexpr (Vectors == 2) acc[r][0] = load(c);
      acc[r][kLast] = load(c + kLast * kLane, edge);
    }
  } else {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) acc[r][v] = set(T(0));
    }
  }

  const T* a = s.a;
  const T* b = s.b;
  const int64_t lda = s.lda;
  const int64_t ldb = s.ldb;
  for (int64_t p = 0; p < s.k; ++p) {
    Vec<T> row[Vectors];
    if constexpr (Vectors == 2) row[0] = load(b);
    if constexpr (Direct) {
      row[kLast] = load(b + kLast * kLane, edge);
    } else {
      row[kLast] = load(b + kLast * kLane);
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Vec<T> element = set(AlongK ? a[r * lda] : a[r]);
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) acc[r][v] = fma(element, row[v], acc[r][v]);
    }
    a += AlongK ? 1 : lda;
    b += ldb;
  }

  if (s.bias != nullptr) {
    Vec<T> bias[Vectors];
    if constexpr (Vectors == 2) bias[0] = load(s.bias);
    bias[kLast] = load(s.bias + kLast * kLane, edge);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) acc[r][v] = acc[r][v] + bias[v];
    }
  }
  c = s.c;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r, c += ldc) {
    if constexpr (Vectors == 2) store(c, acc[r][0]);
    store(c + kLast * kLane, acc[r][kLast], edge);
  }
}

template <class T>
using Tile = void (*)(const Span<T>&);

template <class T, int Vectors, bool AlongK, bool Direct, int Rows = kTileRows>
Tile<T> tile_of(int64_t rows) {
  if constexpr (Rows == 1) {
    return tile<T, 1, Vectors, AlongK, Direct>;
  } else {
    return rows == Rows ? tile<T, Rows, Vectors, AlongK, Direct>
                        : tile_of<T, Vectors, AlongK, Direct, Rows - 1>(rows);
  }
}

template <class T, int Vectors>
Tile<T> tile_of(int64_t rows, bool along_k, bool direct) {
  if (along_k) return direct ? tile_of<T, Vectors, true, true>(rows) : tile_of<T, Vectors, true, false>(rows);
  return direct ? tile_of<T, Vectors, false, true>(rows) : tile_of<T, Vectors, false, false>(rows);
}

template <class T>
Tile<T> tile_of(int64_t rows, int64_t columns, bool along_k, bool direct) {
  if constexpr (kTileVectors == 2) {
    if (columns > kLanes<T>) return tile_of<T, 2>(rows, along_k, direct);
  }
  return tile_of<T, 1>(rows, along_k, direct);
}

// All rows over one panel, in tiles of nearly equal height (a tile of one row runs at a quarter of the
// speed).
template <class T>
void panel(Span<T> s, int64_t rows, bool along_k, bool direct) {
  // Rows a multiple of 4096 bytes apart share one set of the first-level cache, which has 8 to 12 places.
  const bool crowded = along_k && (s.lda * static_cast<int64_t>(sizeof(T))) % 4096 == 0;
  const int64_t most = crowded && kTileRows > 8 ? 8 : kTileRows;
  const int64_t tiles = (rows + most - 1) / most;
  const int64_t height = rows / tiles;
  const int64_t taller = rows % tiles;  // so many tiles have one row more
  const int64_t step = along_k ? s.lda : 1;

  int64_t left = tiles;
  if (taller > 0) {
    const Tile<T> run = tile_of<T>(height + 1, s.columns, along_k, direct);
    for (; left > tiles - taller; --left) {
      run(s);
      s.a += (height + 1) * step;
      s.c += (height + 1) * s.ldc;
    }
  }
  const Tile<T> run = tile_of<T>(height, s.columns, along_k, direct);
  for (; left > 0; --left) {
    run(s);
    s.a += height * step;
    s.c += height * s.ldc;
  }
}

// Copies op(B)'s part [k, columns] to packed [k, kPanel], columns beyond the last filled with 0.
template <class T>
void pack(const T* b, int64_t ldb, bool transposed, int64_t k, int64_t columns, T* packed) {
  if (transposed) return transpose(b, ldb, columns, k, packed, kPanel<T>);
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < kPanel<T>; j += kLanes<T>) {
      const int64_t left = columns - j;
      const T* from = b + p * ldb + j;
      store(packed + p * kPanel<T> + j,
            left >= kLanes<T> ? load(from) : load(from, first_lanes<T>(left < 0 ? 0 : left)));
    }
  }
}

}  // namespace

template <class T>
void gemm(const Product<T>& x, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  if (rows <= 0 || columns <= 0) return;
  alignas(64) T packed[kDepth<T> * kPanel<T>];
  const bool along_k = !x.a_transposed;
  const bool direct = !x.b_transposed && rows <= 2 * kTileRows;
  const T* a = x.a + (along_k ? row * x.lda : row);

  int64_t done = 0;
  do {
    const int64_t depth = x.k - done < kDepth<T> ? x.k - done : kDepth<T>;
    const bool last = done + depth == x.k;
    for (int64_t j = column; j < column + columns; j += kPanel<T>) {
      const int64_t width = column + columns - j < kPanel<T> ? column + columns - j : kPanel<T>;
      const T* b = x.b + (x.b_transposed ? j * x.ldb + done : done * x.ldb + j);
      if (!direct) pack(b, x.ldb, x.b_transposed, depth, width, packed);
      panel<T>({.k = depth,
                .a = a + (along_k ? done : done * x.lda),
                .lda = x.lda,
                .b = direct ? b : packed,
                .ldb = direct ? x.ldb : kPanel<T>,
                .c = x.c + row * x.ldc + j,
                .ldc = x.ldc,
                .columns = width,
                .from_c = x.accumulate || done > 0,
                .bias = last && x.bias != nullptr ? x.bias + j : nullptr},
               rows, along_k, direct);
    }
    done += depth;
  } while (done < x.k);
}

template void gemm(const Product<float>&, int64_t, int64_t, int64_t, int64_t);
template void gemm(const Product<double>&, int64_t, int64_t, int64_t, int64_t);

}  // namespace handgrad::kernels::HANDGRAD_TARGET
