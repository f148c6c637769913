// Kernels that work on rows: the parallel loop over them, and sums over rows, which are the gradients of operands
// that act on every row alike (scale, shift, bias).
#pragma once

#include <algorithm>
#include <cstdint>

#include "handgrad/core/autograd.h"
#include "handgrad/core/kernels/targets.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/parallel.h"

namespace handgrad {

/// How rows are cut into parts, each with its own sums: by the problem only, so that the order of every sum is the
/// same for any number of threads.
struct RowParts {
  /// At most kMaxParts, and none shorter than about 20 us at `nanoseconds` for each row.
  RowParts(std::int64_t row_count, double nanoseconds)
      : rows(row_count),
        rows_per_part(std::max(grain_for(nanoseconds), (row_count + kMaxParts - 1) / kMaxParts)),
        count((row_count + rows_per_part - 1) / rows_per_part) {}

  /// Calls body(part, begin, end) for the rows of every part, in parallel.
  template <class Body>
  void each(const Body& body) const {
    parallel_for(count, [&](std::int64_t part) {
      const std::int64_t begin = part * rows_per_part;
      body(part, begin, std::min(begin + rows_per_part, rows));
    });
  }

  static constexpr std::int64_t kMaxParts = 64;
  std::int64_t rows, rows_per_part, count;
};

/// One row of sums in double for each part. Rows have room for whole vectors of the kernels.
class RowSums {
 public:
  /// Without memory, and part() nullptr, unless the sums are wanted.
  RowSums(const RowParts& parts, std::int64_t width, bool wanted)
      : parts_(wanted ? parts.count : 0),
        width_(width),
        stride_((width + 15) / 16 * 16),
        wanted_(wanted),
        sums_(static_cast<std::size_t>(parts_ * stride_) * sizeof(double)) {
    std::fill_n(sums_.as<double>(), parts_ * stride_, 0.0);
  }

  bool wanted() const { return wanted_; }
  double* part(std::int64_t i) const { return wanted_ ? sums_.as<double>() + i * stride_ : nullptr; }

  /// Adds the parts up, first to last, and writes or adds the result to the gradient.
  template <class T>
  void add_up(GradSink::Target target) const {
    T* to = target.array.mutable_data<T>();
    const bool add = target.add;
    parallel_ranges(width_, grain_for(0.5 * static_cast<double>(parts_ + 1)),
                    [&](std::int64_t begin, std::int64_t end) {
                      double* total = sums_.as<double>();
                      for (std::int64_t p = 1; p < parts_; ++p)
                        for (std::int64_t i = begin; i < end; ++i) total[i] += total[p * stride_ + i];
                      for (std::int64_t i = begin; i < end; ++i) {
                        const double sum = parts_ > 0 ? total[i] : 0.0;
                        to[i] = static_cast<T>(add ? static_cast<double>(to[i]) + sum : sum);
                      }
                    });
  }

 private:
  std::int64_t parts_, width_, stride_;
  bool wanted_;
  Scratch sums_;
};

/// Rows of an array: its vectors along the last dimension.
inline std::int64_t rows_of(const Array& x) { return x.shape().numel(0, x.rank() - 1); }

/// Runs kernel(operands, begin, end) for the rows begin .. end - 1 of x, until all are done, on several threads if it
/// takes long enough. `kernel` is HANDGRAD_ROWS(function); operands.operator()<T>() returns what the function reads
/// and writes, for x's element type T. `nanoseconds`: what a row costs.
template <class Kernel, class Operands>
void for_rows(const Array& x, double nanoseconds, const Kernel& kernel, const Operands& operands) {
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto run = kernel.template operator()<T>();
    const auto of = operands.template operator()<T>();
    parallel_ranges(rows_of(x), grain_for(nanoseconds),
                    [&](std::int64_t begin, std::int64_t end) { run(of, begin, end); });
  });
}

/// The same for a backward function in which the gradients of `kInputs` are sums over rows: calls
/// kernel(operands, sums, begin, end), where sums[i] is a row of doubles to add to, for the i-th of kInputs, or nullptr
/// if it needs no gradient.
template <int... kInputs, class Kernel, class Operands>
void for_rows(const Array& x, double nanoseconds, const Kernel& kernel, const Operands& operands,
              GradSink& sink) {
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const RowParts parts(rows_of(x), nanoseconds);
    const RowSums sums[] = {RowSums(parts, x.shape().last(), sink.wants(kInputs))...};
    const auto run = kernel.template operator()<T>();
    const auto of = operands.template operator()<T>();
    parts.each([&](std::int64_t part, std::int64_t begin, std::int64_t end) {
      double* of_part[sizeof...(kInputs)];
      for (std::size_t i = 0; i < sizeof...(kInputs); ++i) of_part[i] = sums[i].part(part);
      run(of, of_part, begin, end);
    });
    const RowSums* next = sums;
    const auto add_up = [&](int input) {
      if (next->wanted()) next->add_up<T>(sink.into(input));
      ++next;
    };
    (add_up(kInputs), ...);
  });
}

}  // namespace handgrad
