// Functions of each element by itself.
//
//   square    y = x * x                   dx = dy * 2 x                       saved: x
//   sqrt      y = sqrt(x)                 dx = dy / (2 y), 0 for y = 0        saved: y
//   rsqrt     y = 1 / sqrt(x)             dx = -dy / 2 * y^3                  saved: y
//   exp       y = exp(x)                  dx = dy * y                         saved: y
//   log       y = log(x)                  dx = dy / x                         saved: x
//   erf       y = erf(x)                  dx = dy * 2 / sqrt(pi) exp(-x^2)    saved: x
//   tanh      y = tanh(x)                 dx = dy * (1 - y^2)                 saved: y
//   sigmoid   y = 1 / (1 + exp(-x))       dx = dy * y * (1 - y)               saved: y
//   relu      y = max(x, 0), NaN stays    dx = dy where y > 0, else 0         saved: y
//   silu      y = x * s, s = sigmoid(x)   dx = dy * s * (1 + x * (1 - s))     saved: x
//   gelu      y = x * P                   dx = dy * (P + x * P')              saved: x
//
// GELU (Hendrycks and Gimpel, 2016): P is the normal distribution function. exact: P = (1 + erf(x / sqrt(2))) / 2 and
// P' = exp(-x^2 / 2) / sqrt(2 pi). tanh, GPT-2's: P = (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3),
// computed as P = sigmoid(2 u), which is the same and loses no digits where x is negative.
//
// Where dy is 0 the gradient is 0, even if the derivative is infinite or NaN. sqrt's derivative at 0 is 0 by choice, so
// that a norm of zeros trains.
//
// float32: within 2 ulp for exp, log, tanh, sigmoid and erf. float64: the C library's functions.
#include "handgrad/core/kernels/targets.h"

namespace handgrad::kernels {

enum class Function { square, sqrt, rsqrt, exp, log, erf, tanh, sigmoid, relu, silu, gelu_tanh, gelu_exact };

// y = f(x), and dx = dy * f'(saved), or += when `add` is set, for n numbers; y may be x, and dx may be dy unless `add`.
template <class T>
struct FunctionRows {
  void (*forward)(T* y, const T* x, int64_t n);
  void (*backward)(T* dx, const T* dy, const T* saved, int64_t n, bool add);
};

// In the order of Function.
template <class T>
struct Functions {
  FunctionRows<T> of[12];
};

}  // namespace handgrad::kernels

HANDGRAD_EACH_TARGET(extern const Functions<float> float_functions;
                     extern const Functions<double> double_functions;)

#ifdef HANDGRAD_TARGET  // compiled once for each instruction set

#include "handgrad/core/kernels/math.h"

namespace handgrad::kernels::HANDGRAD_TARGET {
namespace {

constexpr double kTwoRootTwoOverPi = 1.5957691216057308;  // 2 sqrt(2 / pi)
constexpr double kCube = 0.044715;

// P of gelu.
template <class T>
HANDGRAD_INLINE Vec<T> tanh_share(Vec<T> x) {
  const Vec<T> bend = fma(x * x, set(T(kTwoRootTwoOverPi * kCube)), set(T(kTwoRootTwoOverPi)));
  return sigmoid(x * bend);
}
template <class T>
HANDGRAD_INLINE Vec<T> exact_share(Vec<T> x) {
  const Vec<T> half = set(T(0.5));
  return fma(erf(x * set(T(0.7071067811865476))), half, half);
}

template <Function kF, class T>
HANDGRAD_INLINE Vec<T> value(Vec<T> x) {
  if constexpr (kF == Function::square) return x * x;
  if constexpr (kF == Function::sqrt) return sqrt(x);
  if constexpr (kF == Function::rsqrt) return set(T(1)) / sqrt(x);
  if constexpr (kF == Function::exp) return exp(x);
  if constexpr (kF == Function::log) return log(x);
  if constexpr (kF == Function::erf) return erf(x);
  if constexpr (kF == Function::tanh) return tanh(x);
  if constexpr (kF == Function::sigmoid) return sigmoid(x);
  if constexpr (kF == Function::relu) return select(less_equal(x, set(T(0))), set(T(0)), x);
  if constexpr (kF == Function::silu) return x * sigmoid(x);
  if constexpr (kF == Function::gelu_tanh) return x * tanh_share(x);
  if constexpr (kF == Function::gelu_exact) return x * exact_share(x);
}

template <class T>
HANDGRAD_INLINE Vec<T> gelu_tanh_chain(Vec<T> dy, Vec<T> x) {
  const Vec<T> zero = set(T(0));
  const Vec<T> p = tanh_share(x);
  const Vec<T> rest = p * (set(T(1)) - p);  // 0 long before x^2 overflows
  const Vec<T> bend = fma(x * x, set(T(3 * kTwoRootTwoOverPi * kCube)), set(T(kTwoRootTwoOverPi)));
  return dy * (p + select(equal(rest, zero), zero, x * rest * bend));
}

// dy * f', from what is saved: `s` is x or y.
template <Function kF, class T>
HANDGRAD_INLINE Vec<T> chain(Vec<T> dy, Vec<T> s) {
  const Vec<T> zero = set(T(0)), one = set(T(1));
  if constexpr (kF == Function::square) return dy * (s + s);
  if constexpr (kF == Function::sqrt) return select(equal(s, zero), zero, dy / (s + s));
  if constexpr (kF == Function::rsqrt) return dy * set(T(-0.5)) * (s * s * s);
  if constexpr (kF == Function::exp) return dy * s;
  if constexpr (kF == Function::log) return dy / s;
  if constexpr (kF == Function::erf) return dy * (set(T(1.1283791670955126)) * exp(-(s * s)));
  if constexpr (kF == Function::tanh) return dy * (one - s * s);
  if constexpr (kF == Function::sigmoid) return dy * (s * (one - s));
  if constexpr (kF == Function::relu) return select(equal(s, zero), zero, dy);
  if constexpr (kF == Function::silu) {
    const Vec<T> p = sigmoid(s);
    return dy * (p * fma(s, one - p, one));
  }
  if constexpr (kF == Function::gelu_tanh) return gelu_tanh_chain(dy, s);
  if constexpr (kF == Function::gelu_exact) {
    const Vec<T> density = set(T(0.3989422804014327)) * exp(s * s * set(T(-0.5)));
    return dy * fma(s, density, exact_share(s));
  }
}

template <Function kF, class T>
void forward(T* y, const T* x, int64_t n) {
  each<T>(
      n, [&](int64_t i, auto lanes)
             __attribute__((always_inline)) { store(y + i, value<kF>(load(x + i, lanes)), lanes); });
}

template <Function kF, class T>
void backward(T* dx, const T* dy, const T* saved, int64_t n, bool add) {
  const Vec<T> zero = set(T(0));
  each<T>(
      n, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const Vec<T> upstream = load(dy + i, lanes);
        const Vec<T> slope = chain<kF>(upstream, load(saved + i, lanes));
        const Vec<T> r = select(equal(upstream, zero), zero, slope);
        store(dx + i, add ? load(dx + i, lanes) + r : r, lanes);
      });
}

template <Function kF, class T>
constexpr FunctionRows<T> kRows = {forward<kF, T>, backward<kF, T>};

template <class T>
constexpr Functions<T> kFunctions = {
    {kRows<Function::square, T>, kRows<Function::sqrt, T>, kRows<Function::rsqrt, T>, kRows<Function::exp, T>,
     kRows<Function::log, T>, kRows<Function::erf, T>, kRows<Function::tanh, T>, kRows<Function::sigmoid, T>,
     kRows<Function::relu, T>, kRows<Function::silu, T>, kRows<Function::gelu_tanh, T>,
     kRows<Function::gelu_exact, T>}};

}  // namespace

const Functions<float> float_functions = kFunctions<float>;
const Functions<double> double_functions = kFunctions<double>;

}  // namespace handgrad::kernels::HANDGRAD_TARGET

#else

#include <cmath>
#include <numbers>

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

using kernels::Function;

/// Whether the derivative is computed from y; else from x.
constexpr bool saves_y(Function f) {
  return f == Function::sqrt || f == Function::rsqrt || f == Function::exp || f == Function::tanh ||
         f == Function::sigmoid || f == Function::relu;
}

template <class T>
const kernels::FunctionRows<T>& rows_for(Function f) {
  if constexpr (sizeof(T) == sizeof(float)) return HANDGRAD_ACTIVE(float_functions)->of[static_cast<int>(f)];
  if constexpr (sizeof(T) == sizeof(double))
    return HANDGRAD_ACTIVE(double_functions)->of[static_cast<int>(f)];
}

template <Function kF>
void backward(const Node& node, const Array& dy, GradSink& sink) {
  const Array& saved = node.saved(saves_y(kF) ? "y" : "x");
  const GradSink::Target into = sink.into(0);
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto run = rows_for<T>(kF).backward;
    T* dx = into.array.mutable_data<T>();
    const T* upstream = dy.data<T>();
    const T* numbers = saved.data<T>();
    parallel_ranges(dy.numel(), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
      run(dx + begin, upstream + begin, numbers + begin, end - begin, into.add);
    });
  });
}

template <Function kF>
Tensor compute(const char* op, const Tensor& x) {
  checks::common_type(op, {{"x", x}});
  Array y = Array::like(x.array());
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto run = rows_for<T>(kF).forward;
    T* to = y.mutable_data<T>();
    const T* from = x.array().data<T>();
    parallel_ranges(x.numel(), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
      run(to + begin, from + begin, end - begin);
    });
  });
  const Save saved = saves_y(kF) ? Save("y", y) : Save("x", x.array());
  return record(op, y, {x}, {saved}, backward<kF>);
}

}  // namespace

Tensor square(const Tensor& x) { return compute<Function::square>("square", x); }
Tensor sqrt(const Tensor& x) { return compute<Function::sqrt>("sqrt", x); }
Tensor rsqrt(const Tensor& x) { return compute<Function::rsqrt>("rsqrt", x); }
Tensor exp(const Tensor& x) { return compute<Function::exp>("exp", x); }
Tensor log(const Tensor& x) { return compute<Function::log>("log", x); }
Tensor erf(const Tensor& x) { return compute<Function::erf>("erf", x); }
Tensor tanh(const Tensor& x) { return compute<Function::tanh>("tanh", x); }
Tensor sigmoid(const Tensor& x) { return compute<Function::sigmoid>("sigmoid", x); }
Tensor relu(const Tensor& x) { return compute<Function::relu>("relu", x); }
Tensor silu(const Tensor& x) { return compute<Function::silu>("silu", x); }

Tensor gelu(const Tensor& x, GeluForm form) {
  return form == GeluForm::exact ? compute<Function::gelu_exact>("gelu_exact", x)
                                 : compute<Function::gelu_tanh>("gelu", x);
}

Tensor gelu_composed(const Tensor& x, GeluForm form) {
  if (form == GeluForm::exact) return x * (0.5 * (1 + erf(x * std::sqrt(0.5))));
  const Tensor u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * pow(x, 3));
  return x * (0.5 * (1 + tanh(u)));
}

}  // namespace handgrad

#endif
