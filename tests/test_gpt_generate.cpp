// Generation: greedy and sampled, within the context, and without a trace left in the model.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/ops.h"
#include "handgrad/models/generate.h"
#include "handgrad/models/gpt.h"

using namespace handgrad;
using models::generate;
using Tokens = std::vector<std::int32_t>;

namespace {

/// Says that the next token is the sum of those it sees, and notes what it was shown.
class Sum final : public models::Model {
 public:
  Tensor forward(const Ids& ids) override {
    seen.push_back(ids.values());
    CHECK(!grad_enabled());
    CHECK(!training());
    std::vector<double> logits;
    std::int32_t sum = 0;
    for (const std::int32_t id : ids.values()) {
      sum += id;
      for (std::int32_t v = 0; v < 10; ++v) logits.push_back(v == sum % 10 ? 5 : 0);
    }
    return Tensor::of(logits, {1, ids.size(1), 10});
  }
  std::int64_t vocab_size() const override { return 10; }
  std::int64_t context_length() const override { return 4; }

  std::vector<Tokens> seen;
};

models::GptModel small_gpt() {
  return models::GptModel({.vocab_size = 11,
                           .context_length = 6,
                           .emb_dim = 8,
                           .n_heads = 2,
                           .n_layers = 1,
                           .drop_rate = 0.5,
                           .init = nn::Init::book},
                          5);
}

}  // namespace

TEST_CASE("generate: temperature 0 takes the largest logit, the first of equals (H61)") {
  for (const double uniform : {0.0, 0.5, 0.999})
    CHECK(models::sample(Tensor::of({1, 3, 2}), {.temperature = 0}, uniform) == 1);
  CHECK(models::sample(Tensor::of({1, 3, 3}), {.temperature = 0}, 0.9) == 1);
  Sum model;
  CHECK(generate(model, {1, 2}, {.max_new_tokens = 3, .temperature = 0}) == Tokens{3, 6, 2});
}

TEST_CASE("generate: looks at the last tokens that fit into the context (H62)") {
  Sum model;
  CHECK(generate(model, {9, 1, 1, 1, 2}, {.max_new_tokens = 3, .temperature = 0}) == Tokens{5, 9, 7});
  CHECK(model.seen == std::vector<Tokens>{{1, 1, 1, 2}, {1, 1, 2, 5}, {1, 2, 5, 9}});
  auto gpt = small_gpt();
  CHECK(generate(gpt, {1, 2, 3, 4, 5, 6}, {.max_new_tokens = 3}).size() == 3);
}

TEST_CASE("generate: probabilities follow temperature and top_k") {
  const Tensor logits = Tensor::of({std::log(0.2), std::log(0.5), std::log(0.3)});
  // Most likely first: token 1 below 0.5, token 2 below 0.8, then token 0.
  CHECK(models::sample(logits, {}, 0.49) == 1);
  CHECK(models::sample(logits, {}, 0.51) == 2);
  CHECK(models::sample(logits, {}, 0.79) == 2);
  CHECK(models::sample(logits, {}, 0.81) == 0);
  CHECK(models::sample(logits, {.top_k = 2}, 0.62) == 1);  // 0.5 / 0.8 = 0.625
  CHECK(models::sample(logits, {.top_k = 2}, 0.63) == 2);
  CHECK(models::sample(logits, {.top_k = 2}, 0.9999) == 2);
  CHECK(models::sample(logits, {.top_k = 1}, 0.9999) == 1);
  CHECK(models::sample(logits, {.top_k = 99}, 0.81) == 0);
  // At temperature 1/2 probabilities go with their squares: 25, 9, 4 of 38.
  CHECK(models::sample(logits, {.temperature = 0.5}, 0.65) == 1);
  CHECK(models::sample(logits, {.temperature = 0.5}, 0.66) == 2);
  CHECK(models::sample(logits, {.temperature = 0.5}, 0.90) == 0);
  CHECK(models::sample(Tensor::of({-INFINITY, 2, -INFINITY}), {}, 0.999) == 1);
}

TEST_CASE("generate: equal seeds give equal tokens, and others other ones") {
  auto model = small_gpt();
  const auto tokens = generate(model, {1}, {.max_new_tokens = 40, .seed = 3});
  CHECK(tokens.size() == 40);
  CHECK(tokens == generate(model, {1}, {.max_new_tokens = 40, .seed = 3}));
  CHECK(tokens != generate(model, {1}, {.max_new_tokens = 40, .seed = 4}));
  for (const std::int32_t token : tokens) {
    CHECK(token >= 0);
    CHECK(token < 11);
  }
}

TEST_CASE("generate: leaves the model training, and streams until it is told to stop") {
  Sum model;
  Tokens streamed;
  const auto tokens =
      generate(model, {1, 2}, {.max_new_tokens = 10, .temperature = 0}, [&](std::int32_t token) {
        streamed.push_back(token);
        return streamed.size() < 2;
      });
  CHECK(tokens == Tokens{3, 6});
  CHECK(streamed == tokens);
  CHECK(model.training());
  CHECK(grad_enabled());
  model.eval();
  CHECK(generate(model, {1}, {.max_new_tokens = 0}).empty());
  CHECK(!model.training());
}

TEST_CASE("generate: invalid prompts and options are rejected") {
  Sum model;
  const auto error_of = [&](const Tokens& prompt, const models::GenerateOptions& options) {
    return expect::message<ValueError>([&] { generate(model, prompt, options); });
  };
  CHECK(error_of({}, {}) == "generate: the prompt must have at least 1 token, got 0");
  CHECK(error_of({1}, {.max_new_tokens = -1}) == "generate: max_new_tokens must be at least 0, got -1");
  CHECK(error_of({1}, {.temperature = -0.5}) ==
        "generate: temperature must be at least 0 and finite, got -0.5");
  CHECK(error_of({1}, {.temperature = INFINITY}) ==
        "generate: temperature must be at least 0 and finite, got inf");
  CHECK(error_of({1}, {.top_k = -2}) == "generate: top_k must be at least 0, got -2");
  CHECK(expect::message<ValueError>([] {
          models::sample(Tensor::of({0, NAN, 1}), {}, 0.5);
        }) == "generate: logits must be finite, got nan for token 1");
}
