#include "handgrad/models/generate.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "handgrad/core/autograd.h"
#include "handgrad/core/error.h"
#include "handgrad/core/random.h"

namespace handgrad::models {
namespace {

void check(const std::vector<std::int32_t>& prompt, const GenerateOptions& options) {
  const auto throw_error = [](const char* rule, auto got) {
    throw ValueError("generate", fmt::format("{}, got {}", rule, got));
  };
  if (prompt.empty()) throw_error("the prompt must have at least 1 token", 0);
  if (options.max_new_tokens < 0) throw_error("max_new_tokens must be at least 0", options.max_new_tokens);
  if (options.top_k < 0) throw_error("top_k must be at least 0", options.top_k);
  if (!(options.temperature >= 0 && std::isfinite(options.temperature)))
    throw_error("temperature must be at least 0 and finite", options.temperature);
}

/// Logits [V] of the token after the last one.
Tensor next_logits(Model& model, const std::vector<std::int32_t>& tokens) {
  const auto seen = std::min<std::size_t>(tokens.size(), static_cast<std::size_t>(model.context_length()));
  const auto count = static_cast<std::int64_t>(seen);
  const Tensor logits = model(Ids(tokens.data() + (tokens.size() - seen), {1, count}));
  return reshape(slice(logits, 1, count - 1, count), {model.vocab_size()});
}

}  // namespace

std::int32_t sample(const Tensor& logits, const GenerateOptions& options, double uniform) {
  const std::int64_t V = logits.numel();
  const std::int64_t k = options.temperature == 0 ? 1 : options.top_k == 0 ? V : std::min(options.top_k, V);
  const auto [largest, tokens] = topk(logits, k);
  const double first = largest.array().value(0);  // a NaN or infinity comes first
  if (!std::isfinite(first))
    throw ValueError("generate",
                     fmt::format("logits must be finite, got {} for token {}", first, tokens.data()[0]));
  if (k == 1) return tokens.data()[0];

  // The first token at which the sum of probabilities exceeds `uniform`.
  const Tensor probabilities = softmax(largest / options.temperature);
  double sum = 0;
  for (std::int64_t i = 0; i < k; ++i) {
    sum += probabilities.array().value(i);
    if (uniform < sum) return tokens.data()[i];
  }
  return tokens.data()[0];  // the sum fell short of 1 by rounding
}

std::vector<std::int32_t> generate(Model& model, const std::vector<std::int32_t>& prompt,
                                   const GenerateOptions& options, const TokenObserver& observer) {
  check(prompt, options);
  const NoGrad no_grad;
  const nn::EvalMode eval_mode(model);
  Random random(options.seed, scope_of("generate").hash);
  std::vector<std::int32_t> tokens = prompt;
  for (std::int64_t i = 0; i < options.max_new_tokens; ++i) {
    tokens.push_back(sample(next_logits(model, tokens), options, random.uniform()));
    if (observer && !observer(tokens.back())) break;
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end()};
}

}  // namespace handgrad::models
