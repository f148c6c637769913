#include "handgrad/core/kernels/softmax_rows.h"

#include "handgrad/core/kernels/math.h"
#include "handgrad/core/kernels/sum.h"
#include "handgrad/core/kernels/vec.h"
#include "handgrad/core/kernels/wide_offset.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

template <class T>
inline constexpr T kInfinity = static_cast<T>(__builtin_inf());

// The largest element that is not NaN; -inf when there is none.
template <class T>
HANDGRAD_INLINE T largest_of(const T* x, int64_t width) {
  Vec<T> largest = set(-kInfinity<T>);
  each<T>(
      width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        largest = max(select(lanes, load(x + i, lanes), set(-kInfinity<T>)), largest);
      });
  return horizontal_max(largest);
}

// What is subtracted before exp: the largest, or 0 where that is -inf, so that exp(-inf - 0) = 0 and no NaN arises.
template <class T>
HANDGRAD_INLINE T offset_for(T largest) {
  return largest == -kInfinity<T> ? T(0) : largest;
}

template <class T>
void softmax(T* y, const T* x, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const Vec<T> offset = set(offset_for(largest_of(x, width)));
    Sum<T> sum;
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> e = select(lanes, exp(load(x + i, lanes) - offset), set(T(0)));
          store(y + i, e, lanes);
          sum.add(e);
        });
    const double total = sum.total();
    const Vec<T> factor = set(static_cast<T>(total == 0 ? 0 : 1 / total));
    each<T>(
        width, [&](int64_t i, auto lanes)
                   __attribute__((always_inline)) { store(y + i, load(y + i, lanes) * factor, lanes); });
  }
}

template <class T>
void softmax_backward(T* dx, bool add, const T* dy, const T* y, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, dx += width, dy += width, y += width) {
    Sum<T> sum;
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          sum.add_product(load(dy + i, lanes), load(y + i, lanes));
        });
    const Vec<T> dy_y = set(static_cast<T>(sum.total()));
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> r = load(y + i, lanes) * (load(dy + i, lanes) - dy_y);
          store(dx + i, add ? load(dx + i, lanes) + r : r, lanes);
        });
  }
}

template <class T>
void sum_exp(double* largest, double* sum, const T* x, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, x += width) {
    const T row_largest = largest_of(x, width);
    const Vec<T> offset = set(offset_for(row_largest));
    Sum<T> total;
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          total.add(select(lanes, exp(load(x + i, lanes) - offset), set(T(0))));
        });
    largest[row] = static_cast<double>(row_largest);
    sum[row] = total.total();
  }
}

template <class T>
void log_softmax(T* y, const T* x, const double* log_sum, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const WideOffset<T> offset(offset_for(log_sum[row]));
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          store(y + i, offset.taken_from(load(x + i, lanes)), lanes);
        });
  }
}

template <class T>
void log_softmax_backward(T* dx, bool add, const T* dy, const T* y, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, dx += width, dy += width, y += width) {
    Sum<T> sum;
    bool all_masked = true;
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          sum.add(load(dy + i, lanes));
          const Vec<T> log_p = select(lanes, load(y + i, lanes), set(-kInfinity<T>));
          if (any(invert(equal(log_p, set(-kInfinity<T>))))) all_masked = false;
        });
    const Vec<T> sum_dy = set(static_cast<T>(sum.total()));
    each<T>(
        width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> p = exp(load(y + i, lanes));
          const Vec<T> r = all_masked ? set(T(0)) : load(dy + i, lanes) - p * sum_dy;
          store(dx + i, add ? load(dx + i, lanes) + r : r, lanes);
        });
  }
}

template <class T>
void cross_entropy_backward(const CrossEntropyBackward<T>& loss, int64_t begin, int64_t end) {
  const Vec<T> factor = set(loss.factor);
  for (int64_t row = begin; row < end; ++row) {
    const T* logits = loss.logits + row * loss.width;
    T* to = loss.dlogits + row * loss.width;
    if (loss.targets[row] == loss.ignored) {
      if (loss.add) continue;
      each<T>(
          loss.width, [&](int64_t i, auto lanes)
                          __attribute__((always_inline)) { store(to + i, set(T(0)), lanes); });
      continue;
    }
    const int64_t target = loss.targets[row];
    const WideOffset<T> log_sum(loss.log_sum[row]);
    const T before = loss.add ? to[target] : T(0);
    each<T>(
        loss.width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> r = exp(log_sum.taken_from(load(logits + i, lanes))) * factor;
          store(to + i, loss.add ? load(to + i, lanes) + r : r, lanes);
        });
    const Vec<T> p = exp(log_sum.taken_from(set(logits[target])));
    store(to + target, set(before) + (p - set(T(1))) * factor, first_lanes<T>(1));
  }
}

}  // namespace

template <class T>
SoftmaxRows<T> softmax_rows() {
  return {
      .softmax = softmax<T>,
      .softmax_backward = softmax_backward<T>,
      .sum_exp = sum_exp<T>,
      .log_softmax = log_softmax<T>,
      .log_softmax_backward = log_softmax_backward<T>,
      .cross_entropy_backward = cross_entropy_backward<T>,
  };
}
template SoftmaxRows<float> softmax_rows();
template SoftmaxRows<double> softmax_rows();

}  // namespace handgrad::kernels::HANDGRAD_TARGET
