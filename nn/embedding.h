// Embedding: a row of numbers for each token id.
#pragma once

#include <cstdint>

#include "handgrad/core/ops.h"
#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// ids [...] to y [..., width]: y is row `id` of the table. IndexError for an id outside of 0 .. count - 1.
///
///     parameter  shape           starts as (by default)  elsewhere
///     weight     [count, width]  normal, deviation 1     PyTorch weight, GPT-2 wte and wpe
///
/// With weight [[1, 2], [3, 4], [5, 6]], ids [2, 0] give [[5, 6], [1, 2]]. A row that is read twice receives
/// the sum of both gradients; there is no padding row.
class Embedding final : public Module {
 public:
  /// A table of `count` rows of `width` numbers.
  Embedding(std::int64_t count, std::int64_t width)
      : weight(param("weight", {count, width}, as_default(normal(1)))) {}

  /// ids [...] to [..., width], without the module path; call the module as a function.
  Tensor forward(const Ids& ids) { return embedding(ids, weight); }
  /// ids [...] to [..., width].
  Tensor operator()(const Ids& ids) {
    return run([&] { return forward(ids); });
  }

  double flops_per_token(std::int64_t /*cols*/) const override { return 0; }  // it copies

  Parameter& weight;  ///< [count, width]
};

}  // namespace handgrad::nn
