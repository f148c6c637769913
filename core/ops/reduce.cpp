// Sums, means, variances and maxima over any set of dimensions R of x, N elements to each result.
//
//   sum   y = sum of x over R                                dx = dy
//   mean  y = sum / N                                        dx = dy / N
//   var   y = sum of (x - mean)^2 / N, or / (N - 1)          dx = dy * 2 (x - mean) / N, or / (N - 1)
//   max   y = x at the first of the largest, or first NaN    dx = dy there, 0 elsewhere
//
// Sums accumulate in double, and in an order that depends on the shape only. The variance takes two passes,
// the mean first: E[x^2] - E[x]^2 loses all digits when the mean is large beside the deviation. sum and mean
// save nothing; var saves x and its mean; max saves positions. Of no elements: sum 0, mean and var NaN, max
// an error.
#include <algorithm>
#include <limits>

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/reduce_plan.h"

namespace handgrad {
namespace {

using Flags = bool[Shape::kMaxRank];

// ---- Checks

/// The dimensions to reduce, counted from 0 and sorted.
Shape checked_dims(const char* op, const Tensor& x, const Dims& dims) {
  checks::common_type(op, {{"x", x}});
  if (dims.empty())
    throw ShapeError(op, "dims must name at least one dimension", {{"x", x.shape()}},
                     "leave dims out to reduce over all of them");
  Flags chosen = {};
  for (const std::int64_t dim : dims) {
    const int i = checks::dimension(op, static_cast<int>(dim), x);
    if (chosen[i])
      throw ShapeError(op, "dims must name each dimension once, got " + dims.text(), {{"x", x.shape()}});
    chosen[i] = true;
  }
  Shape sorted;
  for (int i = 0; i < x.rank(); ++i)
    if (chosen[i]) sorted.push_back(i);
  return sorted;
}

Shape all_dims(const char* op, const Tensor& x) {
  checks::common_type(op, {{"x", x}});
  Shape all;
  for (int i = 0; i < x.rank(); ++i) all.push_back(i);
  return all;
}

Shape reduced_shape(const Shape& shape, const Shape& dims, KeepDim keep) {
  Shape result;
  int next = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool reduced = next < dims.rank() && dims[next] == i;
    next += reduced;
    if (!reduced) result.push_back(shape[i]);
    if (reduced && keep == KeepDim::yes) result.push_back(1);
  }
  return result;
}

ReducePlan plan_for(const Shape& shape, const Shape& dims) {
  Flags reduced = {};
  for (const std::int64_t dim : dims) reduced[dim] = true;
  return {shape, reduced};
}

// ---- Rows

/// Sum of term(x[i]) in eight lanes, so that additions need not wait for each other.
template <class T, class Term>
double row_sum(const T* x, std::int64_t n, const Term& term) {
  double lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; ++j) lanes[j] += term(static_cast<double>(x[i + j]));
  for (; i < n; ++i) lanes[i % 8] += term(static_cast<double>(x[i]));
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

/// Double accumulators for the results of a plan, zero at first.
class Sums {
 public:
  explicit Sums(const ReducePlan& plan)
      : plan_(plan), memory_(static_cast<std::size_t>(plan.results() * plan.partials()) * sizeof(double)) {
    std::fill_n(memory_.as<double>(), plan.results() * plan.partials(), 0.0);
  }

  /// Adds term(x, result) of every element of x to its result.
  template <class T, class Term>
  void add(const T* x, const Term& term) {
    double* sums = memory_.as<double>();
    plan_.walk([&](std::int64_t partial, std::int64_t at, std::int64_t n, std::int64_t y) {
      double* to = sums + partial * plan_.results() + y;
      if (plan_.row_is_reduced()) {
        *to += row_sum(x + at, n, [&](double v) { return term(v, y); });
      } else {
        for (std::int64_t i = 0; i < n; ++i) to[i] += term(static_cast<double>(x[at + i]), y + i);
      }
    });
    for (std::int64_t i = plan_.results(); i < plan_.results() * plan_.partials(); ++i)
      sums[i % plan_.results()] += sums[i];
  }

  const double* data() const { return memory_.as<double>(); }

 private:
  const ReducePlan& plan_;
  Scratch memory_;
};

/// dx = slope(dy, result, x) of every element, or += it.
template <class T, class Slope>
void spread(const ReducePlan& plan, T* dx, const T* dy, bool add, const Slope& slope) {
  plan.walk([&](std::int64_t, std::int64_t at, std::int64_t n, std::int64_t y) {
    T* to = dx + at;
    const std::int64_t step = plan.row_is_reduced() ? 0 : 1;
    for (std::int64_t i = 0; i < n; ++i) {
      const T g = slope(dy[y + i * step], y + i * step, at + i);
      to[i] = add ? to[i] + g : g;
    }
  });
}

// ---- sum and mean

void sum_backward(const Node& node, const Array& dy, GradSink& sink) {
  const GradSink::Target dx = sink.into(0);
  const ReducePlan plan = plan_for(dx.array.shape(), node.list("dims"));
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    spread(plan, dx.array.mutable_data<T>(), dy.data<T>(), dx.add, [](T g, auto, auto) { return g; });
  });
}

void mean_backward(const Node& node, const Array& dy, GradSink& sink) {
  const GradSink::Target dx = sink.into(0);
  const ReducePlan plan = plan_for(dx.array.shape(), node.list("dims"));
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto n = static_cast<T>(plan.reduced());
    spread(plan, dx.array.mutable_data<T>(), dy.data<T>(), dx.add, [n](T g, auto, auto) { return g / n; });
  });
}

Tensor sum_or_mean(const char* op, const Tensor& x, const Shape& dims, KeepDim keep, Backward backward) {
  const ReducePlan plan = plan_for(x.shape(), dims);
  Array y(reduced_shape(x.shape(), dims, keep), x.dtype());
  const double divisor = backward == mean_backward ? static_cast<double>(plan.reduced()) : 1;
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Sums sums(plan);
    sums.add(x.array().data<T>(), [](double v, auto) { return v; });
    std::transform(sums.data(), sums.data() + plan.results(), y.mutable_data<T>(),
                   [divisor](double s) { return static_cast<T>(s / divisor); });
  });
  return record(op, std::move(y), {x}, {}, backward, {{"dims", dims}});
}

// ---- var

void var_backward(const Node& node, const Array& dy, GradSink& sink) {
  const Array& x = node.saved("x");
  const double* mean = node.saved("mean").data<double>();
  const double divisor = node.number("divisor");
  const GradSink::Target dx = sink.into(0);
  const ReducePlan plan = plan_for(x.shape(), node.list("dims"));
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* numbers = x.data<T>();
    spread(plan, dx.array.mutable_data<T>(), dy.data<T>(), dx.add, [&](T g, auto result, auto i) {
      if (g == 0) return T{0};
      return static_cast<T>(g * 2 / divisor * (static_cast<double>(numbers[i]) - mean[result]));
    });
  });
}

// ---- max

/// Whether `a` beats `b`, which stands before it: larger, or the first NaN.
template <class T>
bool beats(T a, T b) {
  return a > b || (a != a && b == b);
}

template <class T>
std::int64_t row_winner(const T* x, std::int64_t n) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < n; ++i)
    if (beats(x[i], x[best])) best = i;
  return best;
}

/// For each result the position in x of its first largest element.
template <class T>
void find_winners(const ReducePlan& plan, const T* x, std::int64_t* winners) {
  constexpr std::int64_t kNone = -1;
  const std::int64_t results = plan.results(), all = results * plan.partials();
  const auto offer = [x](std::int64_t& winner, std::int64_t candidate) {
    if (candidate != kNone && (winner == kNone || beats(x[candidate], x[winner]))) winner = candidate;
  };
  std::fill_n(winners, all, kNone);
  plan.walk([&](std::int64_t partial, std::int64_t at, std::int64_t n, std::int64_t y) {
    std::int64_t* to = winners + partial * results + y;
    if (plan.row_is_reduced()) return offer(*to, at + row_winner(x + at, n));
    for (std::int64_t i = 0; i < n; ++i) offer(to[i], at + i);
  });
  for (std::int64_t i = results; i < all; ++i) offer(winners[i % results], winners[i]);
}

void max_backward(const Node& node, const Array& dy, GradSink& sink) {
  const double* position = node.saved("position").data<double>();
  const GradSink::Target dx = sink.into(0);
  if (!dx.add) dx.array.fill(0);
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* gradient = dx.array.mutable_data<T>();
    const T* g = dy.data<T>();
    for (std::int64_t i = 0; i < dy.numel(); ++i) gradient[static_cast<std::int64_t>(position[i])] += g[i];
  });
}

Tensor max_over(const Tensor& x, const Shape& dims, KeepDim keep) {
  const ReducePlan plan = plan_for(x.shape(), dims);
  if (plan.reduced() == 0)
    throw ShapeError("max", "there must be an element to each result, got none along dims " + dims.text(),
                     {{"x", x.shape()}});
  Array y(reduced_shape(x.shape(), dims, keep), x.dtype());
  Array position(y.shape(), DType::float64);  // whole numbers, exact up to 2^53
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* numbers = x.array().data<T>();
    const Scratch memory(static_cast<std::size_t>(plan.results() * plan.partials()) * sizeof(std::int64_t));
    auto* winners = memory.as<std::int64_t>();
    find_winners(plan, numbers, winners);
    const std::int64_t* end = winners + plan.results();
    std::transform(winners, winners + (end - winners), y.mutable_data<T>(),
                   [=](auto i) { return numbers[i]; });
    std::transform(winners, winners + (end - winners), position.mutable_data<double>(),
                   [](auto i) { return static_cast<double>(i); });
  });
  return record("max", std::move(y), {x}, {{"position", position}}, max_backward, {{"dims", dims}});
}

}  // namespace

Tensor sum(const Tensor& x) { return sum_or_mean("sum", x, all_dims("sum", x), KeepDim::no, sum_backward); }

Tensor sum(const Tensor& x, const Dims& dims, KeepDim keep) {
  return sum_or_mean("sum", x, checked_dims("sum", x, dims), keep, sum_backward);
}

Tensor mean(const Tensor& x) {
  return sum_or_mean("mean", x, all_dims("mean", x), KeepDim::no, mean_backward);
}

Tensor mean(const Tensor& x, const Dims& dims, KeepDim keep) {
  return sum_or_mean("mean", x, checked_dims("mean", x, dims), keep, mean_backward);
}

Tensor var(const Tensor& x, const Dims& dims, KeepDim keep, Variance form) {
  const Shape over = checked_dims("var", x, dims);
  const ReducePlan plan = plan_for(x.shape(), over);
  const auto n = static_cast<double>(plan.reduced());
  const double divisor = form == Variance::biased ? n : std::max(n - 1, 0.0);
  Array y(reduced_shape(x.shape(), over, keep), x.dtype());
  Array mean(y.shape(), DType::float64);
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* numbers = x.array().data<T>();
    double* means = mean.mutable_data<double>();
    {
      Sums sums(plan);
      sums.add(numbers, [](double v, auto) { return v; });
      std::transform(sums.data(), sums.data() + plan.results(), means, [n](double s) { return s / n; });
    }
    Sums squares(plan);
    squares.add(numbers,
                [means](double v, auto result) { return (v - means[result]) * (v - means[result]); });
    std::transform(squares.data(), squares.data() + plan.results(), y.mutable_data<T>(),
                   [divisor](double s) { return static_cast<T>(s / divisor); });
  });
  return record("var", std::move(y), {x}, {{"x", x.array()}, {"mean", mean}}, var_backward,
                {{"dims", over}, {"divisor", divisor}});
}

Tensor max(const Tensor& x) { return max_over(x, all_dims("max", x), KeepDim::no); }

Tensor max(const Tensor& x, const Dims& dims, KeepDim keep) {
  return max_over(x, checked_dims("max", x, dims), keep);
}

}  // namespace handgrad
