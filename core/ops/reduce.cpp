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

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/kernels/binary.h"
#include "handgrad/core/kernels/reduce.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/walk.h"

namespace handgrad {
namespace {

using Block = ReduceWalk::Block;

// ---- Checks

Shape all_dims(const char* op, const Tensor& x) {
  checks::common_type(op, {{"x", x}});
  Shape all;
  for (int i = 0; i < x.rank(); ++i) all.push_back(i);
  return all;
}

/// The dimensions to reduce, counted from 0 and sorted.
Shape checked_dims(const char* op, const Tensor& x, const Dims& dims) {
  const Shape all = all_dims(op, x);
  if (dims.empty())
    throw ShapeError(op, "dims must name at least one dimension, got []", {{"x", x.shape()}},
                     "leave dims out to reduce over all of them");
  bool chosen[Shape::kMaxRank] = {};
  for (const std::int64_t dim : dims) {
    const int i = checks::dimension(op, static_cast<int>(dim), x);
    if (chosen[i])
      checks::throw_shape(op, "dims must name each dimension once, got " + dims.text(), {{"x", x}});
    chosen[i] = true;
  }
  Shape sorted;
  for (const std::int64_t i : all)
    if (chosen[i]) sorted.push_back(i);
  return sorted;
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

ReduceWalk walk_for(const Shape& shape, const Shape& dims) {
  return {shape, reduced_shape(shape, dims, KeepDim::yes)};
}

/// Double accumulators for the results, zero at first.
class Sums {
 public:
  explicit Sums(const ReduceWalk& walk)
      : walk_(walk), memory_(static_cast<std::size_t>(walk.results() * walk.partials()) * sizeof(double)) {
    std::fill_n(memory_.as<double>(), walk.results() * walk.partials(), 0.0);
  }

  /// Lets add_block(block, sums) add a block to its results, which begin at `sums`, and joins partial sums.
  template <class AddBlock>
  const double* add_up(const AddBlock& add_block) {
    double* sums = memory_.as<double>();
    const std::int64_t results = walk_.results();
    walk_.run([&](const Block& block) { add_block(block, sums + block.partial * results + block.y); });
    for (std::int64_t partial = 1; partial < walk_.partials(); ++partial)
      for (std::int64_t i = 0; i < results; ++i) sums[i] += sums[partial * results + i];
    return sums;
  }

 private:
  const ReduceWalk& walk_;
  Scratch memory_;
};

// ---- sum and mean

template <class T>
const double* plain_sums(const ReduceWalk& walk, const T* x, Sums& sums) {
  const auto sum_of = HANDGRAD_ACTIVE(sum<T>);
  const auto add_columns = HANDGRAD_ACTIVE(add_columns<T>);
  const bool along_rows = walk.row_is_reduced();
  return sums.add_up([&](const Block& b, double* to) {
    if (!along_rows) return add_columns(to, x + b.x, b.rows, b.columns, b.row_step);
    for (std::int64_t r = 0; r < b.rows; ++r) to[r] += sum_of(x + b.x + r * b.row_step, b.columns);
  });
}

/// dx = dy / divisor at every element of a result.
template <class T>
void divide_among(const ReduceWalk& walk, const T* dy, GradSink::Target dx, T divisor) {
  T* to = dx.array.mutable_data<T>();
  const bool along_rows = walk.row_is_reduced();
  const auto divide = kernels::binary_function<T>(kernels::Binary::div);
  walk.run([&](const Block& b) {
    const kernels::MatrixOperand<T> g = {dy + b.y, along_rows, !along_rows}, n = {&divisor, 0, 0};
    if (b.row_step == b.columns) return divide(to + b.x, g, n, b.rows, b.columns, dx.add);
    for (std::int64_t r = 0; r < b.rows; ++r) divide(to + b.x + r * b.row_step, g, n, 1, b.columns, dx.add);
  });
}

template <bool kMean>
void sum_backward(const Node& node, const Array& dy, GradSink& sink) {
  const GradSink::Target dx = sink.into(0);
  const ReduceWalk walk = walk_for(dx.array.shape(), node.list("dims"));
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    divide_among<T>(walk, dy.data<T>(), dx, kMean ? static_cast<T>(walk.reduced()) : T{1});
  });
}

template <bool kMean>
Tensor sum_over(const char* op, const Tensor& x, const Shape& dims, KeepDim keep) {
  const ReduceWalk walk = walk_for(x.shape(), dims);
  Array y(reduced_shape(x.shape(), dims, keep), x.dtype());
  const double divisor = kMean ? static_cast<double>(walk.reduced()) : 1;
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Sums sums(walk);
    const double* total = plain_sums(walk, x.array().data<T>(), sums);
    T* to = y.mutable_data<T>();
    for (std::int64_t i = 0; i < walk.results(); ++i) to[i] = static_cast<T>(total[i] / divisor);
  });
  return record(op, std::move(y), {x}, {}, sum_backward<kMean>, {{"dims", dims}});
}

// ---- var

/// Sum of (x - mean)^2 in eight lanes, so that additions need not wait for each other.
template <class T>
double squared_distances(const T* x, std::int64_t n, double mean) {
  const auto squared = [mean](T v) {
    return (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
  };
  double lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; ++j) lanes[j] += squared(x[i + j]);
  for (int j = 0; i < n; ++i, ++j) lanes[j] += squared(x[i]);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <class T>
const double* squared_distances(const ReduceWalk& walk, const T* x, const double* mean, Sums& sums) {
  const bool along_rows = walk.row_is_reduced();
  return sums.add_up([&](const Block& b, double* to) {
    const double* center = mean + b.y;
    for (std::int64_t r = 0; r < b.rows; ++r) {
      const T* row = x + b.x + r * b.row_step;
      if (along_rows) {
        to[r] += squared_distances(row, b.columns, center[r]);
      } else {
        for (std::int64_t i = 0; i < b.columns; ++i) {
          const double distance = static_cast<double>(row[i]) - center[i];
          to[i] += distance * distance;
        }
      }
    }
  });
}

void var_backward(const Node& node, const Array& dy, GradSink& sink) {
  const Array& x = node.saved("x");
  const double* mean = node.saved("mean").data<double>();
  const double divisor = node.number("divisor");
  const GradSink::Target dx = sink.into(0);
  const ReduceWalk walk = walk_for(x.shape(), node.list("dims"));
  const std::int64_t row = walk.row_is_reduced(), column = 1 - row;  // steps in the results
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *numbers = x.data<T>(), *g = dy.data<T>();
    T* gradient = dx.array.mutable_data<T>();
    walk.run([&](const Block& b) {
      for (std::int64_t r = 0; r < b.rows; ++r) {
        const std::int64_t at = b.x + r * b.row_step, y = b.y + r * row;
        for (std::int64_t i = 0; i < b.columns; ++i) {
          const auto upstream = static_cast<double>(g[y + i * column]);
          // Where the upstream gradient is 0 the result is 0, even if the variance is NaN.
          const double slope = upstream == 0 ? 0 : upstream * 2 / divisor;
          const T d = static_cast<T>(slope * (static_cast<double>(numbers[at + i]) - mean[y + i * column]));
          gradient[at + i] = dx.add ? gradient[at + i] + d : d;
        }
      }
    });
  });
}

// ---- max

/// Position of the first of the largest of n > 0 numbers, or of the first NaN.
template <class T>
std::int64_t row_winner(const T* x, std::int64_t n) {
  constexpr std::int64_t kStretch =
      256;  // in which the kernel finds the largest number, but not its position
  const auto largest_of = HANDGRAD_ACTIVE(largest<T>);
  std::int64_t stretch = 0;
  T largest = largest_of(x, std::min(n, kStretch));
  for (std::int64_t i = kStretch; i < n && largest == largest; i += kStretch) {
    const T here = largest_of(x + i, std::min(n - i, kStretch));
    if (!precedes(here, largest)) continue;
    largest = here;
    stretch = i;
  }
  std::int64_t i = stretch;
  while (!(x[i] == largest || (x[i] != x[i] && largest != largest))) ++i;
  return i;
}

/// For each result the position in x of its first largest element.
template <class T>
void find_winners(const ReduceWalk& walk, const T* x, std::int64_t* winners) {
  constexpr std::int64_t kNone = -1;
  const std::int64_t results = walk.results(), all = results * walk.partials();
  const auto offer = [x](std::int64_t& winner, std::int64_t candidate) {
    if (candidate != kNone && (winner == kNone || precedes(x[candidate], x[winner]))) winner = candidate;
  };
  std::fill_n(winners, all, kNone);
  walk.run([&](const Block& b) {
    std::int64_t* to = winners + b.partial * results + b.y;
    for (std::int64_t r = 0; r < b.rows; ++r) {
      const std::int64_t at = b.x + r * b.row_step;
      if (walk.row_is_reduced()) {
        offer(to[r], at + row_winner(x + at, b.columns));
      } else {
        for (std::int64_t i = 0; i < b.columns; ++i) offer(to[i], at + i);
      }
    }
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
  const ReduceWalk walk = walk_for(x.shape(), dims);
  if (walk.reduced() == 0)
    checks::throw_shape("max", "there must be an element to each result, got none along dims " + dims.text(),
                        {{"x", x}});
  Array y(reduced_shape(x.shape(), dims, keep), x.dtype());
  Array position(y.shape(), DType::float64);  // whole numbers, exact up to 2^53
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* numbers = x.array().data<T>();
    const Scratch memory(static_cast<std::size_t>(walk.results() * walk.partials()) * sizeof(std::int64_t));
    auto* winners = memory.as<std::int64_t>();
    find_winners(walk, numbers, winners);
    T* to = y.mutable_data<T>();
    auto* positions = position.mutable_data<double>();
    for (std::int64_t i = 0; i < walk.results(); ++i) {
      to[i] = numbers[winners[i]];
      positions[i] = static_cast<double>(winners[i]);
    }
  });
  return record("max", std::move(y), {x}, {{"position", position}}, max_backward, {{"dims", dims}});
}

}  // namespace

Tensor sum(const Tensor& x) { return sum_over<false>("sum", x, all_dims("sum", x), KeepDim::no); }

Tensor sum(const Tensor& x, const Dims& dims, KeepDim keep) {
  return sum_over<false>("sum", x, checked_dims("sum", x, dims), keep);
}

Tensor mean(const Tensor& x) { return sum_over<true>("mean", x, all_dims("mean", x), KeepDim::no); }

Tensor mean(const Tensor& x, const Dims& dims, KeepDim keep) {
  return sum_over<true>("mean", x, checked_dims("mean", x, dims), keep);
}

Tensor var(const Tensor& x, const Dims& dims, KeepDim keep, Variance form) {
  const Shape over = checked_dims("var", x, dims);
  const ReduceWalk walk = walk_for(x.shape(), over);
  const auto n = static_cast<double>(walk.reduced());
  const double divisor = form == Variance::biased ? n : std::max(n - 1, 0.0);
  Array y(reduced_shape(x.shape(), over, keep), x.dtype());
  Array mean(y.shape(), DType::float64);
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* numbers = x.array().data<T>();
    double* means = mean.mutable_data<double>();
    Sums sums(walk), squares(walk);
    const double* total = plain_sums(walk, numbers, sums);
    for (std::int64_t i = 0; i < walk.results(); ++i) means[i] = total[i] / n;
    const double* square = squared_distances(walk, numbers, means, squares);
    T* to = y.mutable_data<T>();
    for (std::int64_t i = 0; i < walk.results(); ++i) to[i] = static_cast<T>(square[i] / divisor);
  });
  return record("var", std::move(y), {x}, {{"x", x.array()}, {"mean", mean}}, var_backward,
                {{"dims", over}, {"divisor", divisor}});
}

Tensor max(const Tensor& x) { return max_over(x, all_dims("max", x), KeepDim::no); }

Tensor max(const Tensor& x, const Dims& dims, KeepDim keep) {
  return max_over(x, checked_dims("max", x, dims), keep);
}

}  // namespace handgrad
