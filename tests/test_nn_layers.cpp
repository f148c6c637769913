// Layers: the numbers of their documentation, and what they promise.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "expect.h"
#include "handgrad/core/ops.h"
#include "handgrad/nn/activation.h"
#include "handgrad/nn/attention.h"
#include "handgrad/nn/embedding.h"
#include "handgrad/nn/layer_norm.h"
#include "handgrad/nn/linear.h"
#include "handgrad/nn/sequential.h"
#include "handgrad/nn/transformer_block.h"

using namespace handgrad;

namespace {

void set(Parameter& parameter, const std::vector<double>& values) {
  parameter.mutable_array().assign(Array::of(values, parameter.shape(), parameter.dtype()));
}

/// Every parameter from one seed, as float64.
void fill(nn::Module& module, std::uint64_t seed) {
  module.to(DType::float64);
  for (Parameter* parameter : module.parameters())
    parameter->mutable_array().assign(expect::normal(parameter->shape(), seed++, DType::float64, 0, 0.5));
}

}  // namespace

TEST_CASE("linear: the numbers of its documentation") {
  nn::Linear layer(2, 2);
  set(layer.weight, {1, 2, 0, -1});
  set(*layer.bias, {10, 20});
  expect::exactly(layer(Tensor::of({3, 4})), {21, 16});
  CHECK(layer.in() == 2);
  nn::Linear without(2, 3, false);
  CHECK(without.bias == nullptr);
  CHECK(without.weight.shape() == Shape{3, 2});
  CHECK(without.out() == 3);
}

TEST_CASE("linear: two made by hand start different, within PyTorch's bound") {
  const nn::Linear a(4, 4), b(4, 4);
  CHECK(!expect::same_bits(a.weight.array(), b.weight.array()));
  for (const double w : a.weight.values()) CHECK(std::abs(w) <= 0.5);
}

TEST_CASE("embedding: the numbers of its documentation, and gradients that add up") {
  nn::Embedding layer(3, 2);
  set(layer.weight, {1, 2, 3, 4, 5, 6});
  expect::exactly(layer(Ids::of({2, 0})), {5, 6, 1, 2});
  layer(Ids::of({2, 0, 2})).backward(Array::of({1, 2, 3, 4, 5, 6}, {3, 2}));
  expect::exactly(layer.weight.grad(), {3, 4, 0, 0, 6, 8});
}

TEST_CASE("layer_norm and rms_norm: the numbers of their documentation, both forms") {
  for (const nn::Form form : {nn::Form::fused, nn::Form::composed}) {
    nn::LayerNorm norm(4, 1e-5, form);
    expect::near(norm(Tensor::of({2, 2, 6, 6})), {-0.99999875, -0.99999875, 0.99999875, 0.99999875}, 1e-7, 0);
    set(norm.scale, {1, 2, 1, 2});
    set(norm.shift, {0, 0, 5, 5});
    expect::near(norm(Tensor::of({2, 2, 6, 6})), {-1, -2, 6, 7});
    nn::RMSNorm rms(2, 0, form);
    expect::near(rms(Tensor::of({1, 7})), {0.2, 1.4});
  }
  CHECK(nn::LayerNorm(3).norm()->eps == 1e-5);
  CHECK(nn::RMSNorm(3).type() == "rms_norm");
  CHECK(nn::LayerNorm(3).scale.name() == "scale");
}

TEST_CASE("dropout: the same numbers for the same path, call and step, and others otherwise") {
  nn::Sequential model;
  nn::Dropout& first = model.add<nn::Dropout>(0.5);
  nn::Dropout& second = model.add<nn::Dropout>(0.5);
  const Tensor x = Tensor::ones({1000});
  const auto run = [&](nn::Layer& layer, std::uint32_t step) {
    set_random_context({.seed = 5, .step = step});
    return layer(x);
  };
  const Tensor y = run(first, 0);
  CHECK(expect::same_bits(y.array(), run(first, 0).array()));
  CHECK(!expect::same_bits(y.array(), run(first, 1).array()));
  CHECK(!expect::same_bits(y.array(), run(second, 0).array()));
  set_random_context({.seed = 5});
  first(x);
  CHECK(!expect::same_bits(y.array(), first(x).array()));  // its second call in the step

  double kept = 0;
  for (const double v : y.values()) {
    CHECK((v == 0 || v == 2));
    kept += v != 0 ? 1 : 0;
  }
  CHECK(kept > 430);
  CHECK(kept < 570);
  first.eval();
  CHECK(first(x).array().shares_storage(x.array()));
  CHECK(nn::Dropout(0)(x).array().shares_storage(x.array()));
}

TEST_CASE("dropout: a rate must be at least 0 and below 1") {
  CHECK(expect::message<ValueError>([] { nn::Dropout(1); }) ==
        "dropout: drop_rate must be at least 0 and less than 1, got 1");
  CHECK(expect::message<ValueError>([] { nn::Dropout(-0.1); }) ==
        "dropout: drop_rate must be at least 0 and less than 1, got -0.1");
  CHECK(expect::message<ValueError>([] { nn::Dropout(std::nan("")); }) ==
        "dropout: drop_rate must be at least 0 and less than 1, got nan");
}

TEST_CASE("activations: by name, and a name that is not known") {
  const std::vector<std::pair<std::string, double>> at_one = {
      {"gelu", 0.841191991},    {"gelu_exact", 0.841344746}, {"relu", 1},
      {"sigmoid", 0.731058579}, {"silu", 0.731058579},       {"tanh", 0.761594156}};
  std::vector<std::string> names;
  for (const auto& [name, value] : at_one) {
    names.push_back(name);
    expect::near((*nn::make_activation(name))(Tensor::of({1})), {value});
  }
  CHECK(nn::activation_names() == names);
  CHECK(expect::message<ValueError>([] { nn::make_activation("gleu"); }) ==
        "activation: unknown activation \"gleu\"; did you mean \"gelu\"? (known: gelu, gelu_exact, relu, "
        "sigmoid, "
        "silu, tanh)");
}

TEST_CASE("sequential: names its layers by number, and is nothing when empty") {
  nn::Sequential layers;
  const Tensor x = Tensor::of({1, 2, 3, 4});
  CHECK(layers(x).array().shares_storage(x.array()));
  layers.add<nn::Linear>(4, 16);
  layers.add<nn::Gelu>();
  layers.add<nn::Linear>(16, 4);
  CHECK(layers.size() == 3);
  CHECK(layers[2].path() == "2");
  CHECK(layers.find_parameter("2.bias")->shape() == Shape{4});
  CHECK(layers(x).shape() == Shape{4});
}

TEST_CASE("identity: nothing, without parameters") {
  nn::Identity none;
  CHECK(none.parameters().empty());
  expect::exactly(none(Tensor::of({1, 2})), {1, 2});
}

TEST_CASE("feed_forward: the book's names, and its formula") {
  nn::FeedForward ff(2, 3, "relu");
  set(*ff.find_parameter("layers.0.weight"), {1, 0, 0, 1, 1, 1});
  set(*ff.find_parameter("layers.0.bias"), {0, 0, -10});
  set(*ff.find_parameter("layers.2.weight"), {1, 1, 1, 2, 0, 0});
  set(*ff.find_parameter("layers.2.bias"), {0.5, 0});
  expect::exactly(ff(Tensor::of({3, -4})), {3.5, 6});
  CHECK(nn::FeedForward(8).find_parameter("layers.0.weight")->shape() == Shape{32, 8});
  CHECK(nn::FeedForward(8).parameter_count() == 8 * 32 * 2 + 32 + 8);
}

TEST_CASE("attention: both forms give the same numbers and gradients") {
  for (const bool qkv_bias : {false, true}) {
    nn::MultiHeadAttention fused(6, 2, 0, qkv_bias), composed(6, 2, 0, qkv_bias, nn::Form::composed);
    fill(fused, 1);
    fill(composed, 1);
    const Array numbers = expect::normal({2, 4, 6}, 99, DType::float64),
                dy = expect::normal({2, 4, 6}, 98, DType::float64);
    Tensor x = expect::leaf(numbers), x2 = expect::leaf(numbers.copy());
    const Tensor y = fused(x), y2 = composed(x2);
    y.backward(dy);
    y2.backward(dy);
    expect::near(y, y2.values(), 1e-14, 1e-13);
    expect::near(x.grad(), x2.grad().values(), 1e-14, 1e-13);
    const auto a = fused.named_parameters(), b = composed.named_parameters();
    REQUIRE(a.size() == (qkv_bias ? 8u : 5u));
    for (std::size_t i = 0; i < a.size(); ++i) {
      INFO(a[i].name);
      CHECK(a[i].name == b[i].name);
      expect::near(a[i].parameter->grad(), b[i].parameter->grad().values(), 1e-13, 1e-12);
    }
  }
}

TEST_CASE("attention: the first token sees only itself, and no token sees a later one") {
  nn::MultiHeadAttention att(4, 2);
  fill(att, 3);
  const Tensor x = Tensor::constant(expect::normal({1, 3, 4}, 4, DType::float64));
  const Tensor y = att(x);
  const Tensor alone = att(slice(x, 1, 0, 1));
  expect::near(slice(y, 1, 0, 1), alone.values(), 1e-15, 1e-14);
  expect::near(alone, att.out_proj(att.W_value(slice(x, 1, 0, 1))).values(), 1e-15, 1e-14);
  const Tensor changed = concat({slice(x, 1, 0, 2), Tensor::full({1, 1, 4}, 7, DType::float64)}, 1);
  CHECK(expect::same_bits(slice(att(changed), 1, 0, 2).array(), slice(y, 1, 0, 2).array()));
}

TEST_CASE("attention: observers see queries, keys and values in the fused form too") {
  struct Notes final : nn::ModuleObserver {
    std::vector<std::pair<std::string, std::vector<double>>> seen;
    void output(const nn::Module& module, const Tensor& y) override {
      seen.emplace_back(module.path(), y.values());
    }
  } fused_notes, composed_notes;
  nn::MultiHeadAttention fused(4, 2), composed(4, 2, 0, false, nn::Form::composed);
  fill(fused, 5);
  fill(composed, 5);
  const Tensor x = Tensor::constant(expect::normal({1, 3, 4}, 6, DType::float64));
  {
    const nn::ModuleObserverGuard guard(fused_notes);
    fused(x);
  }
  {
    const nn::ModuleObserverGuard guard(composed_notes);
    composed(x);
  }
  REQUIRE(fused_notes.seen.size() == 5);
  REQUIRE(composed_notes.seen.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(fused_notes.seen[i].first ==
          std::vector<std::string>{"W_query", "W_key", "W_value", "out_proj", ""}[i]);
    for (std::size_t j = 0; j < 12; ++j)
      CHECK(fused_notes.seen[i].second[j] ==
            doctest::Approx(composed_notes.seen[i].second[j]).epsilon(1e-12));
  }
}

TEST_CASE("attention: heads must divide the width") {
  CHECK(expect::message<ValueError>([] { nn::MultiHeadAttention(10, 3); }) ==
        "multi_head_attention: n_heads must divide emb_dim = 10, got 3");
  CHECK(expect::message<ValueError>([] { nn::MultiHeadAttention(8, 0); }) ==
        "multi_head_attention: n_heads must divide emb_dim = 8, got 0");
}

TEST_CASE("attention: dropout only while training (H60)") {
  nn::MultiHeadAttention att(4, 2, 0.5), without(4, 2);
  fill(att, 7);
  fill(without, 7);
  const Tensor x = Tensor::constant(expect::normal({2, 8, 4}, 8, DType::float64));
  CHECK(!expect::same_bits(att(x).array(), without(x).array()));
  att.eval();
  CHECK(expect::same_bits(att(x).array(), without(x).array()));
}

TEST_CASE("transformer_block: two residual branches behind norms, with the book's names") {
  nn::TransformerBlock block({.emb_dim = 4, .n_heads = 2});
  fill(block, 11);
  const Tensor x = Tensor::constant(expect::normal({2, 3, 4}, 12, DType::float64));
  const Tensor middle = x + block.att(block.norm1(x));
  expect::near(block(x), (middle + block.ff(block.norm2(middle))).values(), 0, 0);
  std::vector<std::string> names;
  for (const auto& named : block.named_parameters()) names.push_back(named.name);
  CHECK(names == std::vector<std::string>{"norm1.scale", "norm1.shift", "att.W_query.weight",
                                          "att.W_key.weight", "att.W_value.weight", "att.out_proj.weight",
                                          "att.out_proj.bias", "norm2.scale", "norm2.shift",
                                          "ff.layers.0.weight", "ff.layers.0.bias", "ff.layers.2.weight",
                                          "ff.layers.2.bias"});
}
