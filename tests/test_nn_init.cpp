// First weights: what they are drawn from, and what they depend on.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "expect.h"
#include "handgrad/core/parallel.h"
#include "handgrad/models/gpt.h"
#include "handgrad/nn/init.h"
#include "handgrad/nn/linear.h"

using namespace handgrad;

namespace {

struct Spread {
  double mean = 0, deviation = 0, largest = 0;
};

Spread spread_of(const nn::Module& module, const char* name) {
  const Parameter* parameter = module.find_parameter(name);
  REQUIRE(parameter != nullptr);
  const std::vector<double> values = parameter->values();
  Spread s;
  for (const double v : values) {
    s.mean += v;
    s.largest = std::max(s.largest, std::abs(v));
  }
  s.mean /= static_cast<double>(values.size());
  for (const double v : values) s.deviation += (v - s.mean) * (v - s.mean);
  s.deviation = std::sqrt(s.deviation / static_cast<double>(values.size()));
  return s;
}

models::GptConfig small(nn::Init init) {
  return {.vocab_size = 300,
          .context_length = 64,
          .emb_dim = 100,
          .n_heads = 4,
          .n_layers = 2,
          .qkv_bias = true,
          .init = init};
}

}  // namespace

TEST_CASE("init book: PyTorch's defaults for Linear and Embedding, norms untouched") {
  const models::GptModel model(small(nn::Init::book), 1);
  const auto check = [&](const char* name, double mean_within, double deviation, double within) {
    INFO(name);
    const Spread s = spread_of(model, name);
    CHECK(std::abs(s.mean) < mean_within);
    CHECK(s.deviation == doctest::Approx(deviation).epsilon(within));
  };
  check("tok_emb.weight", 0.03, 1, 0.02);
  check("pos_emb.weight", 0.06, 1, 0.04);
  // Uniform in +-b has deviation b / sqrt(3).
  check("trf_blocks.1.att.W_key.weight", 0.003, 0.1 / std::sqrt(3), 0.02);
  check("trf_blocks.0.ff.layers.2.weight", 0.002, 0.05 / std::sqrt(3), 0.02);
  check("out_head.weight", 0.002, 0.1 / std::sqrt(3), 0.02);
  CHECK(spread_of(model, "out_head.weight").largest <= 0.1);
  CHECK(spread_of(model, "out_head.weight").largest > 0.099);
  CHECK(spread_of(model, "trf_blocks.0.att.W_query.bias").largest <= 0.1);
  CHECK(spread_of(model, "trf_blocks.0.ff.layers.2.bias").largest <= 0.05);
  CHECK(spread_of(model, "trf_blocks.0.ff.layers.2.bias").largest > 0.04);
  expect::exactly(model.find_parameter("final_norm.scale")->array(), std::vector<double>(100, 1));
  expect::exactly(model.find_parameter("trf_blocks.0.norm1.shift")->array(), std::vector<double>(100, 0));
}

TEST_CASE("init gpt2: 0.02, zero biases, residual projections smaller (H55)") {
  const models::GptModel model(small(nn::Init::gpt2), 1);
  for (const char* name : {"tok_emb.weight", "trf_blocks.1.att.W_key.weight",
                           "trf_blocks.0.ff.layers.0.weight", "out_head.weight"}) {
    INFO(name);
    CHECK(spread_of(model, name).deviation == doctest::Approx(0.02).epsilon(0.02));
    CHECK(std::abs(spread_of(model, name).mean) < 1e-3);
  }
  for (const char* name : {"trf_blocks.1.att.out_proj.weight", "trf_blocks.0.ff.layers.2.weight"}) {
    INFO(name);
    CHECK(spread_of(model, name).deviation == doctest::Approx(0.02 / std::sqrt(2 * 2)).epsilon(0.02));
  }
  for (const char* name : {"trf_blocks.1.att.W_key.bias", "trf_blocks.1.att.out_proj.bias",
                           "trf_blocks.0.ff.layers.2.bias", "final_norm.shift"}) {
    INFO(name);
    CHECK(spread_of(model, name).largest == 0);
  }

  // The sizes of the report: 12 blocks of width 768, here without their other parts.
  nn::Sequential deep;
  for (int i = 0; i < 24; ++i) deep.add<nn::Linear>(i == 5 ? 768 : 1, i == 5 ? 768 : 1).end_branch();
  nn::set_init(deep, nn::Init::gpt2);
  nn::draw(deep, 3);
  CHECK(spread_of(deep, "5.weight").deviation == doctest::Approx(0.00408248).epsilon(0.01));
}

TEST_CASE("init: a parameter's numbers depend on seed and name alone") {
  models::GptConfig config = small(nn::Init::gpt2);
  const models::GptModel model(config, 1), again(config, 1), other(config, 2);
  config.n_layers = 3;
  config.tie_weights = true;
  config.norm = [](std::int64_t width) { return std::make_unique<nn::Linear>(width, width); };
  const models::GptModel larger(config, 1);
  for (const char* name :
       {"tok_emb.weight", "trf_blocks.1.att.W_key.weight", "trf_blocks.0.ff.layers.0.weight"}) {
    INFO(name);
    const Array& numbers = model.find_parameter(name)->array();
    CHECK(expect::same_bits(numbers, again.find_parameter(name)->array()));
    CHECK(expect::same_bits(numbers, larger.find_parameter(name)->array()));
    CHECK(!expect::same_bits(numbers, other.find_parameter(name)->array()));
  }
  CHECK(!expect::same_bits(model.find_parameter("trf_blocks.0.att.W_key.weight")->array(),
                           model.find_parameter("trf_blocks.1.att.W_key.weight")->array()));
}

TEST_CASE("init: while DrawLater lives, random numbers wait for draw") {
  const models::GptModel drawn(small(nn::Init::gpt2), 1);
  CHECK(spread_of(nn::Linear(4, 3), "weight").largest > 0);
  std::unique_ptr<models::GptModel> model;
  {
    const nn::DrawLater later;
    model = std::make_unique<models::GptModel>(small(nn::Init::gpt2), 7);
    CHECK(spread_of(*model, "tok_emb.weight").largest == 0);
    CHECK(spread_of(*model, "final_norm.scale").largest == 1);
  }
  nn::draw(*model, 1);
  for (const nn::NamedParameter& named : drawn.named_parameters())
    CHECK(expect::same_bits(named.parameter->array(), model->find_parameter(named.name)->array()));
}

TEST_CASE("init: a user's layer keeps what it chose, drawn by seed and name (F71)") {
  struct Gated final : nn::Layer {
    explicit Gated(std::int64_t width, bool more = false)
        : linear(child<nn::Linear>("linear", width, width)),
          W_h(param("W_h", {width, width}, nn::normal(0.3))) {
      if (more) param("before", {3, 3}, nn::uniform(0.5));
      param("b", {width}, nn::uniform(0.1));
      param("gain", {width}, nn::constant(2));
    }
    Tensor forward(const Tensor& x) override { return linear(matmul(x, W_h)); }
    nn::Linear& linear;
    Parameter& W_h;
  };
  models::GptConfig config = small(nn::Init::gpt2);
  config.ff = [](std::int64_t width) { return std::make_unique<Gated>(width); };
  const models::GptModel model(config, 1), other(config, 2);
  config.n_layers = 1;
  config.init = nn::Init::book;
  config.ff = [](std::int64_t width) { return std::make_unique<Gated>(width, true); };
  const models::GptModel book(config, 1);
  for (const char* name : {"trf_blocks.0.ff.W_h", "trf_blocks.0.ff.b"}) {
    INFO(name);
    const Array& numbers = model.find_parameter(name)->array();
    CHECK(expect::same_bits(numbers, book.find_parameter(name)->array()));
    CHECK(!expect::same_bits(numbers, other.find_parameter(name)->array()));
  }
  CHECK(spread_of(model, "trf_blocks.0.ff.W_h").deviation == doctest::Approx(0.3).epsilon(0.02));
  CHECK(spread_of(model, "trf_blocks.0.ff.b").largest <= 0.1);
  CHECK(spread_of(model, "trf_blocks.0.ff.linear.weight").deviation == doctest::Approx(0.02).epsilon(0.02));
  CHECK(spread_of(book, "trf_blocks.0.ff.gain").largest == 2);
  CHECK(spread_of(book, "trf_blocks.0.ff.linear.weight").largest > 0.09);
}

TEST_CASE("init: the same bits for any number of threads, and as one sequence") {
  const int before = thread_count();
  nn::Sequential one, three;
  one.add<nn::Linear>(300, 200);
  three.add<nn::Linear>(300, 200);
  for (const nn::Init scheme : {nn::Init::book, nn::Init::gpt2}) {
    set_thread_count(1);
    nn::set_init(one, scheme);
    nn::draw(one, 9);
    set_thread_count(3);
    nn::set_init(three, scheme);
    nn::draw(three, 9);
    CHECK(expect::same_bits(one.find_parameter("0.weight")->array(),
                            three.find_parameter("0.weight")->array()));
  }
  set_thread_count(before);
  Random random(9, scope_of("0.weight").hash);
  CHECK(expect::same_bits(one.find_parameter("0.weight")->array(),
                          expect::normal_array({200, 300}, 0, 0.02, random)));
}

TEST_CASE("init: a tied weight is drawn once, as what declared it first") {
  models::GptConfig config = small(nn::Init::book);
  const models::GptModel untied(config, 4);
  config.tie_weights = true;
  const models::GptModel tied(config, 4);
  CHECK(&tied.out_head.weight == &tied.tok_emb.weight);
  CHECK(expect::same_bits(tied.tok_emb.weight.array(), untied.tok_emb.weight.array()));
}
