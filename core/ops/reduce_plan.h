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

  /// A part of the operand: `rows` rows of `columns` numbers from position x on, `row_step` apart. Where rows are
  /// reduced, each gives one result, from position y on; else each column does.
  struct Block {
    std::int64_t partial;
    std::int64_t x, rows, columns, row_step;
    std::int64_t y;
  };

  /// Calls body(block) for blocks that together are the operand. Those with the same results come in order, others
  /// on any thread.
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
    if (runs_ == 1) return body(Block{partial, begin, 1, end - begin, end - begin, begin * step_[0]});
    const std::int64_t rows = size_[runs_ - 2], columns = size_[runs_ - 1];
    if (cut_ == Cut::columns) return body(Block{partial, begin, rows, end - begin, columns, begin});
    Block block = {partial, begin * (elements_ / size_[0]), rows, columns, columns, begin * step_[0]};
    if (runs_ == 2) {
      block.rows = end - begin;
      return body(block);
    }
    std::int64_t at[Shape::kMaxRank] = {};
    const std::int64_t last = end * (elements_ / size_[0]);
    for (; block.x < last; block.x += rows * columns) {
      body(block);
      for (int d = runs_ - 3; d >= 0; --d) {
        block.y += step_[d];
        if (d == 0 || ++at[d] < size_[d]) break;
        at[d] = 0;
        block.y -= step_[d] * size_[d];
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
