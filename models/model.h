// Model: predicts the next token id from token ids. The registry has the models that a config may name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "handgrad/core/ops.h"
#include "handgrad/nn/module.h"
#include "handgrad/nn/registry.h"

namespace handgrad::models {

/// A language model. Call it as a function: `model(ids)`.
class Model : public nn::Module {
 public:
  /// ids [B, T], T at most `context_length()`; logits [B, T, V] of the token after each position.
  virtual Tensor forward(const Ids& ids) = 0;
  /// forward under the model's path.
  Tensor operator()(const Ids& ids) {
    return run([&] { return forward(ids); });
  }

  /// Cross-entropy of inputs [B, T] against targets [B, T], a scalar: the mean over the targets that are not
  /// kIgnoreIndex, or, given `divisor`, their sum divided by it, for a mean over several micro-batches. A
  /// model whose logits are large may compute it without holding all of them.
  virtual Tensor loss(const Ids& inputs, const Ids& targets, std::optional<double> divisor = std::nullopt) {
    const Tensor logits = (*this)(inputs);
    return divisor ? cross_entropy_by_count(logits, targets, *divisor) : cross_entropy(logits, targets);
  }

  virtual std::int64_t vocab_size() const = 0;      ///< V
  virtual std::int64_t context_length() const = 0;  ///< the most tokens in a row that it can look at
};

/// What a run tells the factory of its model.
struct ModelContext {
  std::int64_t vocab_size = 0;  ///< the tokenizer's, default of the key vocab_size; 0: not known
};

/// gpt (the default), and what a program adds. A factory that finds `fields.building()` false reads and
/// checks its keys and returns nullptr.
io::Registry<Model, const ModelContext&>& registry();

/// The model that `fields` name, with first weights drawn by `seed`; without a seed they are zeros, to be loaded
/// from a file. nullptr when the factory only checked the keys.
std::unique_ptr<Model> make(io::Fields& fields, const ModelContext& context,
                            std::optional<std::uint64_t> seed = std::nullopt);

}  // namespace handgrad::models
