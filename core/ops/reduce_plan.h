// How a reduction walks through its operand, for any choice of dimensions and any number of threads.
#pragma once

#include <cstdint>

#include "handgrad/core/parallel.h"
#include "handgrad/core/shape.h"

namespace handgrad {

/// Dimensions of size 1 are left out and neighbours that are both kept, or both reduced, are merged: what
/// remains are runs that alternate, such as [outer, reduced, inner]. The operand is read in rows, the last
/// run being the row.
class ReducePlan {
 public:
  /// `reduced[i]` tells whether dimension i of `shape` is reduced.
  ReducePlan(const Shape& shape, const bool* reduced);

  /// Numbers in the operand, in the result, and in the operand for each of the result.
  std::int64_t elements() const { return elements_; }
  std::int64_t results() const { return results_; }
  std::int64_t reduced() const { return reduced_; }

  /// Whether a row gives one result; else it gives one result for each of its elements.
  bool row_is_reduced() const { return step_[runs_ - 1] == 0; }
  /// How many sets of partial results the walk fills, to be joined in order; it depends on the shape only.
  std::int64_t partials() const { return cut_ == Cut::into_partials ? parts_ : 1; }

  /// Calls body(partial, x, n, y) for every row: n elements from position x of the operand on, whose results
  /// start at position y. Calls for the same results come in order, others on any thread.
  template <class Body>
  void walk(const Body& body) const {
    if (elements_ == 0) return;
    if (parts_ == 1) return walk_part(0, 0, cut_run(), body);
    parallel_for(parts_, [&](std::int64_t part) {
      walk_part(part, cut_run() * part / parts_, cut_run() * (part + 1) / parts_, body);
    });
  }

 private:
  /// How work is cut for several threads: by results along the first or the last run, or, where the first run
  /// is reduced and there are few results, into parts with partial results.
  enum class Cut { first_run, columns, into_partials };

  std::int64_t cut_run() const { return cut_ == Cut::columns ? size_[1] : size_[0]; }

  template <class Body>
  void walk_part(std::int64_t part, std::int64_t begin, std::int64_t end, const Body& body) const {
    const std::int64_t partial = cut_ == Cut::into_partials ? part : 0;
    if (runs_ == 1) return body(partial, begin, end - begin, begin * step_[0]);
    if (cut_ == Cut::columns) {
      for (std::int64_t r = 0; r < size_[0]; ++r) body(partial, r * size_[1] + begin, end - begin, begin);
      return;
    }
    const std::int64_t row = size_[runs_ - 1], rows = elements_ / size_[0] / row * (end - begin);
    std::int64_t at[Shape::kMaxRank] = {};
    std::int64_t x = begin * (elements_ / size_[0]), y = begin * step_[0];
    for (std::int64_t r = 0; r < rows; ++r, x += row) {
      body(partial, x, row, y);
      for (int d = runs_ - 2; d >= 0; --d) {
        y += step_[d];
        if (d == 0 || ++at[d] < size_[d]) break;
        at[d] = 0;
        y -= step_[d] * size_[d];
      }
    }
  }

  int runs_ = 0;
  std::int64_t size_[Shape::kMaxRank] = {};
  std::int64_t step_[Shape::kMaxRank] = {};  // in the results; 0 for a reduced run
  std::int64_t elements_ = 1, results_ = 1, reduced_ = 1;
  std::int64_t parts_ = 1;
  Cut cut_ = Cut::first_run;
};

}  // namespace handgrad
