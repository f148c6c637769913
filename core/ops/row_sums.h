// Sums over rows: the gradient of whatever one row of numbers does to every row of x (scale, shift, bias).
#pragma once

#include <algorithm>
#include <cstdint>

#include "handgrad/core/autograd.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/parallel.h"

namespace handgrad {

/// How rows are cut into parts, each with sums of its own: by the problem only, so that the order of every sum is
/// the same for any number of threads.
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

}  // namespace handgrad
