// The GPT: names, counts, shared weights, rejected sizes, and the first loss.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/ops.h"
#include "handgrad/models/gpt.h"

using namespace handgrad;
using models::GptConfig;
using models::GptModel;

namespace {

GptConfig small() {
  return {.vocab_size = 11, .context_length = 6, .emb_dim = 8, .n_heads = 2, .n_layers = 2};
}

/// Numbers in the parameters of a GPT with layer_norm and feed_forward.
std::int64_t count(const GptConfig& c) {
  const std::int64_t C = c.emb_dim;
  const std::int64_t norm = 2 * C, att = 4 * C * C + C + (c.qkv_bias ? 3 * C : 0),
                     ff = 2 * 4 * C * C + 4 * C + C;
  return c.vocab_size * C * (c.tie_weights ? 1 : 2) + c.context_length * C +
         c.n_layers * (2 * norm + att + ff) + norm;
}

Ids some_ids(std::int64_t B, std::int64_t T, std::int64_t V, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < B * T; ++i)
    ids.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(V))));
  return Ids(ids, {B, T});
}

}  // namespace

TEST_CASE("gpt: parameters have the book's names, in the model's order") {
  GptConfig config = small();
  config.qkv_bias = true;
  std::vector<std::string> names;
  for (const auto& named : GptModel(config).named_parameters()) names.push_back(named.name);
  std::vector<std::string> expected = {"tok_emb.weight", "pos_emb.weight"};
  for (const std::string block : {"trf_blocks.0.", "trf_blocks.1."})
    for (const char* name :
         {"norm1.scale", "norm1.shift", "att.W_query.weight", "att.W_query.bias", "att.W_key.weight",
          "att.W_key.bias", "att.W_value.weight", "att.W_value.bias", "att.out_proj.weight",
          "att.out_proj.bias", "norm2.scale", "norm2.shift", "ff.layers.0.weight", "ff.layers.0.bias",
          "ff.layers.2.weight", "ff.layers.2.bias"})
      expected.push_back(block + name);
  for (const char* name : {"final_norm.scale", "final_norm.shift", "out_head.weight"})
    expected.push_back(name);
  CHECK(names == expected);
  CHECK(GptModel(config).type() == "gpt_model");
}

TEST_CASE("gpt: as many parameters as GPT-2, by a formula that small models confirm") {
  for (const bool tied : {false, true})
    for (const bool bias : {false, true}) {
      GptConfig config = small();
      config.tie_weights = tied;
      config.qkv_bias = bias;
      CHECK(GptModel(config).parameter_count() == count(config));
    }
  CHECK(count({}) == 163009536);
  CHECK(count({.qkv_bias = true, .tie_weights = true}) == 124439808);
}

TEST_CASE("gpt: logits of shape [B, T, V] that depend on no later token") {
  GptModel model(small(), 3);
  const Ids ids = some_ids(2, 6, 11, 1);
  const Tensor logits = model(ids);
  CHECK(logits.shape() == Shape{2, 6, 11});
  CHECK(model.vocab_size() == 11);
  CHECK(model.context_length() == 6);
  std::vector<std::int32_t> changed = ids.values();
  changed[5] = (changed[5] + 1) % 11;
  const Tensor other = model(Ids(changed, {2, 6}));
  const std::vector<double> a = logits.values(), b = other.values();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool last_of_row_0 = i / 11 == 5;
    if (!last_of_row_0) CHECK(a[i] == b[i]);
  }
  CHECK(a[5 * 11] != b[5 * 11]);
}

TEST_CASE("gpt: sizes that do not fit name both values, before anything is allocated (H79)") {
  const auto error_of = [](GptConfig config) {
    return expect::message<ValueError>([&] { GptModel{config}; });
  };
  CHECK(error_of({.emb_dim = 10, .n_heads = 3}) == "gpt: n_heads must divide emb_dim = 10, got 3");
  CHECK(error_of({.emb_dim = 8, .n_heads = 0}) == "gpt: n_heads must divide emb_dim = 8, got 0");
  CHECK(error_of({.vocab_size = 0}) == "gpt: vocab_size must be at least 1 and at most 2^31, got 0");
  CHECK(error_of({.emb_dim = std::int64_t{1} << 40}) ==
        "gpt: emb_dim must be at least 1 and at most 2^31, got 1099511627776");
  CHECK(error_of({.n_layers = 100'000'000}) ==
        "gpt: a model may have at most 1e+11 parameters, these sizes give 7.1e+14\n"
        "  try: a smaller n_layers, emb_dim or vocab_size");
  CHECK(error_of({.drop_rate = 1}) == "gpt: drop_rate must be at least 0 and less than 1, got 1");
}

TEST_CASE("gpt: too many tokens in a row, a wrong rank and an unknown token") {
  GptModel model(small());
  CHECK(expect::message<ShapeError>([&] { model(some_ids(2, 7, 11, 1)); }) ==
        "gpt: ids must have shape [B, T] with T at most context_length = 6, got [2, 7]");
  CHECK(expect::message<ShapeError>([&] {
          model(Ids::of({1, 2}));
        }) == "gpt: ids must have shape [B, T] with T at most context_length = 6, got [2]");
  const std::string text = expect::message<IndexError>([&] { model(Ids::of({{1, 11}})); });
  CHECK(text.find("11") != std::string::npos);
  CHECK(text.find("\n  in: tok_emb") != std::string::npos);
}

TEST_CASE("gpt: a tied table receives the gradients of both its uses (H43)") {
  struct Tied final : models::Model {
    Tied() : table(child<nn::Embedding>("table", 2, 1)), head(child<nn::Linear>("head", table.weight)) {
      table.weight.mutable_array().assign(Array::of({2, 3}, {2, 1}));
    }
    Tensor forward(const Ids& ids) override { return head(table(ids)); }
    std::int64_t vocab_size() const override { return 2; }
    std::int64_t context_length() const override { return 1; }
    nn::Embedding& table;
    nn::Linear& head;
  } model;
  CHECK(model.parameter_count() == 2);
  const Tensor loss = model.loss(Ids::of({0}).reshape({1, 1}), Ids::of({1}).reshape({1, 1}));
  CHECK(loss.item() == doctest::Approx(0.12692801).epsilon(1e-6));
  loss.backward();
  expect::near(model.table.weight.grad(), {0.11920292, -0.23840584});
}

TEST_CASE("gpt: tied weights stay one tensor (H44)") {
  GptConfig config = small();
  config.tie_weights = true;
  GptModel model(config, 1);
  CHECK(&model.out_head.weight == &model.tok_emb.weight);
  CHECK(model.find_parameter("out_head.weight") == model.find_parameter("tok_emb.weight"));
  const Tensor before = model(Ids::of({3}).reshape({1, 1}));
  model.tok_emb.weight.mutable_array().fill(0);
  expect::exactly(model(Ids::of({3}).reshape({1, 1})), std::vector<double>(11, 0));
  CHECK(before.values() != std::vector<double>(11, 0));
  model.to(DType::float64);
  CHECK(model.out_head.weight.dtype() == DType::float64);
}

TEST_CASE("gpt: evaluation twice gives the same loss, that of dropout 0 (H60)") {
  GptConfig config = small();
  GptModel plain(config, 2);
  config.drop_rate = 0.2;
  GptModel model(config, 2);
  const Ids inputs = some_ids(3, 6, 11, 4), targets = some_ids(3, 6, 11, 5);
  const double expected = plain.loss(inputs, targets).item();
  const double training = model.loss(inputs, targets).item();
  CHECK(training != expected);
  CHECK(model.loss(inputs, targets).item() != training);  // other numbers are left out
  const nn::EvalMode eval_mode(model);
  const NoGrad no_grad;
  CHECK(model.loss(inputs, targets).item() == expected);
  CHECK(model.loss(inputs, targets).item() == expected);
}

TEST_CASE("gpt: a loss divided by a count of the caller's") {
  GptModel model(small(), 6);
  const Ids inputs = some_ids(2, 5, 11, 7);
  std::vector<std::int32_t> targets = some_ids(2, 5, 11, 8).values();
  const double all = model.loss(inputs, Ids(targets, {2, 5})).item();
  CHECK(model.loss(inputs, Ids(targets, {2, 5}), 20.0).item() == doctest::Approx(all / 2).epsilon(1e-6));
  targets[0] = targets[9] = kIgnoreIndex;
  CHECK(model.loss(inputs, Ids(targets, {2, 5})).item() ==
        doctest::Approx(model.loss(inputs, Ids(targets, {2, 5}), 8.0).item()).epsilon(1e-6));
}

TEST_CASE("gpt: with gpt2 weights the first loss is ln V + C * 0.02^2 / 2 (H55)") {
  GptModel model({.vocab_size = 1000, .context_length = 64, .emb_dim = 128, .n_heads = 4, .n_layers = 2}, 1);
  const NoGrad no_grad;
  const double loss = model.loss(some_ids(8, 64, 1000, 1), some_ids(8, 64, 1000, 2)).item();
  // The final norm's output has length sqrt(C), so logits have deviation 0.02 sqrt(C).
  CHECK(std::abs(loss - (std::log(1000.0) + 128 * 0.0004 / 2)) < 0.03);
}

TEST_CASE("gpt: composed attention and norms give the same loss and gradients") {
  GptConfig config = small();
  GptModel fused(config, 9);
  config.attention = nn::Form::composed;
  config.norm = [](std::int64_t width) {
    return std::make_unique<nn::LayerNorm>(width, 1e-5, nn::Form::composed);
  };
  GptModel composed(config, 9);
  fused.to(DType::float64);
  composed.to(DType::float64);
  const Ids inputs = some_ids(2, 6, 11, 1), targets = some_ids(2, 6, 11, 2);
  const Tensor a = fused.loss(inputs, targets), b = composed.loss(inputs, targets);
  CHECK(a.item() == doctest::Approx(b.item()).epsilon(1e-14));
  a.backward();
  b.backward();
  const auto of_fused = fused.named_parameters(), of_composed = composed.named_parameters();
  for (std::size_t i = 0; i < of_fused.size(); ++i) {
    INFO(of_fused[i].name);
    expect::near(of_fused[i].parameter->grad(), of_composed[i].parameter->grad().values(), 1e-15, 1e-10);
  }
}
