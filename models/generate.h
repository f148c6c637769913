// Generation: a model continues a text, one token after another.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "handgrad/models/model.h"

namespace handgrad::models {

/// How tokens are chosen.
struct GenerateOptions {
  std::int64_t max_new_tokens = 100;  ///< at most so many
  /// Logits are divided by it before softmax; 0: always the most likely token, the first of equals.
  double temperature = 1;
  std::int64_t top_k = 0;  ///< only the k most likely tokens; 0: all
  std::uint64_t seed = 0;  ///< equal seeds give equal tokens
};

/// Sees each token as soon as it is known; false ends the generation.
using TokenObserver = std::function<bool(std::int32_t token)>;

/// The tokens that `model` adds to `prompt`. It looks at the last context_length() tokens: what is further
/// back is forgotten. Works in evaluation mode without history, and leaves the model as it was. ValueError
/// for an empty prompt, an option out of range, or logits that are not finite.
std::vector<std::int32_t> generate(Model& model, const std::vector<std::int32_t>& prompt,
                                   const GenerateOptions& options = {}, const TokenObserver& observer = {});

/// The next token from its logits [V], by the same rule; `uniform` in [0, 1) decides between likely ones.
std::int32_t sample(const Tensor& logits, const GenerateOptions& options, double uniform);

}  // namespace handgrad::models
