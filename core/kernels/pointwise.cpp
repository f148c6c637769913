#include "handgrad/core/kernels/pointwise.h"

#include "handgrad/core/kernels/math.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

// Each function: value(x), and chain(dy, saved) = dy * f'.

struct Square {
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    return x * x;
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> x) {
    return dy * (x + x);
  }
};

struct Sqrt {
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    return sqrt(x);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> y) {
    const Vec<T> zero = set(T(0));
    return select(equal(y, zero), zero, dy / (y + y));
  }
};

struct Rsqrt {
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    return set(T(1)) / sqrt(x);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> y) {
    return dy * set(T(-0.5)) * (y * y * y);
  }
};

struct Exp {
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    return exp(x);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> y) {
    return dy * y;
  }
};

struct Log {
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    return log(x);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> x) {
    return dy / x;
  }
};

struct Tanh {
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    return tanh(x);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> y) {
    return dy * (set(T(1)) - y * y);
  }
};

struct Sigmoid {
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    return sigmoid(x);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> y) {
    return dy * (y * (set(T(1)) - y));
  }
};

struct Erf {
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    return erf(x);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> x) {
    return dy * (set(T(1.1283791670955126)) * exp(-(x * x)));
  }
};

struct Relu {
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    const Vec<T> zero = set(T(0));
    return select(less_equal(x, zero), zero, x);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> y) {
    const Vec<T> zero = set(T(0));
    return select(equal(y, zero), zero, dy);
  }
};

struct Silu {
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    return x * sigmoid(x);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> x) {
    const Vec<T> one = set(T(1));
    const Vec<T> s = sigmoid(x);
    return dy * (s * fma(x, one - s, one));
  }
};

constexpr double kTwoRootTwoOverPi = 1.5957691216057308;  // 2 sqrt(2 / pi)
constexpr double kCube = 0.044715;

struct GeluTanh {
  template <class T>
  HANDGRAD_INLINE static Vec<T> share(Vec<T> x) {
    const Vec<T> bend = fma(x * x, set(T(kTwoRootTwoOverPi * kCube)), set(T(kTwoRootTwoOverPi)));
    return sigmoid(x * bend);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    return x * share(x);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> x) {
    const Vec<T> zero = set(T(0));
    const Vec<T> p = share(x);
    const Vec<T> rest = p * (set(T(1)) - p);  // 0 long before x^2 overflows
    const Vec<T> bend = fma(x * x, set(T(3 * kTwoRootTwoOverPi * kCube)), set(T(kTwoRootTwoOverPi)));
    return dy * (p + select(equal(rest, zero), zero, x * rest * bend));
  }
};

struct GeluExact {
  template <class T>
  HANDGRAD_INLINE static Vec<T> share(Vec<T> x) {
    const Vec<T> half = set(T(0.5));
    return fma(erf(x * set(T(0.7071067811865476))), half, half);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> value(Vec<T> x) {
    return x * share(x);
  }
  template <class T>
  HANDGRAD_INLINE static Vec<T> chain(Vec<T> dy, Vec<T> x) {
    const Vec<T> density = set(T(0.3989422804014327)) * exp(x * x * set(T(-0.5)));
    return dy * fma(x, density, share(x));
  }
};

template <class F, class T>
void forward(T* y, const T* x, int64_t n) {
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        store(y + i, F::template value<T>(load(x + i, lanes)), lanes);
      });
}

template <class F, class T>
void backward(T* dx, const T* dy, const T* saved, int64_t n, bool add) {
  const Vec<T> zero = set(T(0));
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> upstream = load(dy + i, lanes);
        const Vec<T> slope = F::template chain<T>(upstream, load(saved + i, lanes));
        const Vec<T> r = select(equal(upstream, zero), zero, slope);
        store(dx + i, add ? load(dx + i, lanes) + r : r, lanes);
      });
}

template <class F, class T>
constexpr Function<T> function() {
  return {.forward = forward<F, T>, .backward = backward<F, T>};
}

}  // namespace

template <class T>
Pointwise<T> pointwise() {
  return {
      .square = function<Square, T>(),
      .sqrt = function<Sqrt, T>(),
      .rsqrt = function<Rsqrt, T>(),
      .exp = function<Exp, T>(),
      .log = function<Log, T>(),
      .tanh = function<Tanh, T>(),
      .sigmoid = function<Sigmoid, T>(),
      .erf = function<Erf, T>(),
      .relu = function<Relu, T>(),
      .silu = function<Silu, T>(),
      .gelu_tanh = function<GeluTanh, T>(),
      .gelu_exact = function<GeluExact, T>(),
  };
}
template Pointwise<float> pointwise();
template Pointwise<double> pointwise();

}  // namespace handgrad::kernels::HANDGRAD_TARGET
