#include "handgrad/core/kernels/elementwise.h"

#include "handgrad/core/kernels/vec.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

struct Add {
  template <class T>
  HANDGRAD_INLINE static Vec<T> apply(Vec<T> a, Vec<T> b) {
    return a + b;
  }
};
struct Sub {
  template <class T>
  HANDGRAD_INLINE static Vec<T> apply(Vec<T> a, Vec<T> b) {
    return a - b;
  }
};
struct Mul {
  template <class T>
  HANDGRAD_INLINE static Vec<T> apply(Vec<T> a, Vec<T> b) {
    return a * b;
  }
};
struct Div {
  template <class T>
  HANDGRAD_INLINE static Vec<T> apply(Vec<T> a, Vec<T> b) {
    return a / b;
  }
};

template <class Op>
struct Chain {
  template <class T>
  HANDGRAD_INLINE static Vec<T> apply(Vec<T> a, Vec<T> b) {
    const Vec<T> zero = set(T(0));
    return select(equal(a, zero), zero, Op::template apply<T>(a, b));
  }
};

// One row. A and B say whether that operand moves along the row or stands still.
template <class Op, bool A, bool B, class T>
HANDGRAD_INLINE void binary_row(T* y, const T* a, const T* b, int64_t n, bool add) {
  const Vec<T> first_a = set(a[0]);
  const Vec<T> first_b = set(b[0]);
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        Vec<T> va = first_a;
        Vec<T> vb = first_b;
        if constexpr (A) va = load(a + i, lanes);
        if constexpr (B) vb = load(b + i, lanes);
        const Vec<T> r = Op::template apply<T>(va, vb);
        store(y + i, add ? load(y + i, lanes) + r : r, lanes);
      });
}

template <class Op, bool A, bool B, class T>
void binary_rows(T* y, const Operand<T>& a, const Operand<T>& b, int64_t rows, int64_t columns, bool add) {
  for (int64_t i = 0; i < rows; ++i) {
    binary_row<Op, A, B>(y + i * columns, a.data + i * a.row, b.data + i * b.row, columns, add);
  }
}

template <class Op, class T>
void binary(T* y, const Operand<T>& a, const Operand<T>& b, int64_t rows, int64_t columns, bool add) {
  if (rows <= 0 || columns <= 0) return;
  // Matrices without gaps are one long row.
  if (a.column == 1 && b.column == 1 && a.row == columns && b.row == columns) {
    return binary_rows<Op, true, true>(y, a, b, 1, rows * columns, add);
  }
  if (a.column == 1 && b.column == 1) return binary_rows<Op, true, true>(y, a, b, rows, columns, add);
  if (a.column == 1) return binary_rows<Op, true, false>(y, a, b, rows, columns, add);
  if (b.column == 1) return binary_rows<Op, false, true>(y, a, b, rows, columns, add);
  binary_rows<Op, false, false>(y, a, b, rows, columns, add);
}

template <class T>
void accumulate(T* y, const T* x, int64_t n) {
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        store(y + i, load(y + i, lanes) + load(x + i, lanes), lanes);
      });
}

template <class T>
void axpy(T* y, T factor, const T* x, int64_t n) {
  const Vec<T> f = set(factor);
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        store(y + i, fma(f, load(x + i, lanes), load(y + i, lanes)), lanes);
      });
}

}  // namespace

template <class T>
Elementwise<T> elementwise() {
  return {
      .add = binary<Add, T>,
      .sub = binary<Sub, T>,
      .mul = binary<Mul, T>,
      .div = binary<Div, T>,
      .chain_mul = binary<Chain<Mul>, T>,
      .chain_div = binary<Chain<Div>, T>,
      .accumulate = accumulate<T>,
      .axpy = axpy<T>,
  };
}
template Elementwise<float> elementwise();
template Elementwise<double> elementwise();

}  // namespace handgrad::kernels::HANDGRAD_TARGET
