#include "handgrad/core/matmul.h"

#include <algorithm>

#include "handgrad/core/kernels/table.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

using std::int64_t;

// Multiply-adds in about 20 us; handing less to another thread costs more than it saves.
constexpr int64_t kGrain = 1'500'000;
constexpr int64_t kMostChunks = 32;
// Rows of one chunk: so many that a transposed panel of B pays, and 256 numbers of each fit the second-level
// cache.
constexpr int64_t kMostRows = 512;
constexpr int64_t kFewestRows = 96;
constexpr int64_t kPanel = 32;

int64_t pieces_of(int64_t total, int64_t size) { return (total + size - 1) / size; }
int64_t round_up(int64_t x, int64_t multiple) { return pieces_of(x, multiple) * multiple; }

// How the work is cut; every product of the batch alike. Depends on the problem only.
struct Cut {
  int64_t batch, rows, columns;  // of one chunk
};

template <class T>
int64_t work_of(const Matmul<T>& x) {
  return x.m * x.n * (x.k + 8) * static_cast<int64_t>(sizeof(T) / sizeof(float));
}

template <class T>
Cut cut(const Matmul<T>& x) {
  // A sum over the batch is one chain after the other, so all of it belongs to one chunk.
  const int64_t separate = x.c_stride == 0 ? 1 : x.batch;
  const int64_t chunks = std::clamp<int64_t>(work_of(x) * x.batch / kGrain, 1, kMostChunks);
  if (chunks <= separate) return {x.c_stride == 0 ? x.batch : pieces_of(x.batch, chunks), x.m, x.n};

  const int64_t per_product = pieces_of(chunks, separate);
  const int64_t panels = pieces_of(x.n, kPanel);
  int64_t blocks = pieces_of(x.m, kMostRows);
  const int64_t groups = std::min(panels, pieces_of(per_product, blocks));
  blocks = std::max(blocks, std::min(pieces_of(per_product, groups), pieces_of(x.m, kFewestRows)));
  return {x.c_stride == 0 ? x.batch : 1, round_up(pieces_of(x.m, blocks), 12),
          pieces_of(panels, groups) * kPanel};
}

}  // namespace

template <class T>
void matmul(const Matmul<T>& x) {
  if (x.m <= 0 || x.n <= 0 || x.batch <= 0) return;
  const auto run = kernels::table<T>().gemm.run;
  if (x.batch == 1 && work_of(x) <= kGrain) return run(x, 0, x.m, 0, x.n);
  const Cut size = cut(x);
  const int64_t row_blocks = pieces_of(x.m, size.rows);
  const int64_t column_groups = pieces_of(x.n, size.columns);
  const int64_t per_product = row_blocks * column_groups;

  parallel_for(pieces_of(x.batch, size.batch) * per_product, [&](int64_t chunk) {
    const int64_t first = chunk / per_product * size.batch;
    const int64_t row = chunk % per_product / column_groups * size.rows;
    const int64_t column = chunk % column_groups * size.columns;
    kernels::Product<T> product = x;
    for (int64_t i = first; i < std::min(first + size.batch, x.batch); ++i) {
      product.a = x.a + i * x.a_stride;
      product.b = x.b + i * x.b_stride;
      product.c = x.c + i * x.c_stride;
      product.accumulate = x.accumulate || (x.c_stride == 0 && i > 0);
      product.bias = x.c_stride == 0 && i + 1 < x.batch ? nullptr : x.bias;
      run(product, row, std::min(size.rows, x.m - row), column, std::min(size.columns, x.n - column));
    }
  });
}

template void matmul(const Matmul<float>&);
template void matmul(const Matmul<double>&);

}  // namespace handgrad
