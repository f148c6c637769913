// Every gradient of a GPT of two layers against finite differences in double precision: every parameter, every element.
#include <doctest/doctest.h>

#include <sstream>

#include "expect.h"
#include "handgrad/core/gradcheck.h"
#include "handgrad/models/gpt.h"
#include "handgrad/nn/layer_norm.h"

using namespace handgrad;

namespace {

void check(models::GptConfig config) {
  config.vocab_size = 7;
  config.context_length = 5;
  config.emb_dim = 8;
  config.n_heads = 2;
  config.n_layers = 2;
  models::GptModel model(config, 3);
  model.to(DType::float64);
  // Away from ones and zeros, where mistakes in scale, shift and biases would not show.
  std::uint64_t seed = 100;
  for (Parameter* parameter : model.parameters())
    if (parameter->rank() == 1)
      parameter->mutable_array().assign(expect::normal(parameter->shape(), ++seed, DType::float64, 0.8, 0.4));
  const Ids inputs = Ids::of({{1, 6, 1, 0, 3}, {2, 2, 5, 4, 1}});
  const Ids targets = Ids::of({{6, 1, kIgnoreIndex, 3, 3}, {2, 5, 4, 1, 0}});
  const GradCheckReport report =
      check_parameters([&] { return model.loss(inputs, targets); }, model.named_parameters());
  std::ostringstream text;
  text << report;
  INFO(text.str());
  CHECK(report.ok);
  CHECK(report.error <= 1e-6);
  CHECK(report.tensors.size() == model.parameters().size());
  std::int64_t checked = 0;
  for (const GradCheckEntry& entry : report.tensors) {
    CHECK(entry.has_gradient);
    checked += entry.checked;
  }
  CHECK(checked == model.parameter_count());
}

}  // namespace

TEST_CASE("gpt gradients: book weights, no biases in attention") { check({.init = nn::Init::book}); }

TEST_CASE("gpt gradients: tied weights, qkv_bias, dropout") {
  set_random_context({.seed = 1});
  check({.drop_rate = 0.3, .qkv_bias = true, .tie_weights = true, .init = nn::Init::gpt2});
}

TEST_CASE("gpt gradients: RMSNorm and another activation") {
  models::GptConfig config{.init = nn::Init::book};
  config.norm = [](std::int64_t width) { return std::make_unique<nn::RMSNorm>(width); };
  config.ff = [](std::int64_t width) { return std::make_unique<nn::FeedForward>(width, 3 * width, "silu"); };
  check(config);
}
