// Registries: layers and models by name, the user's own among them.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "expect.h"
#include "handgrad/core/ops.h"
#include "handgrad/io/json_text.h"
#include "handgrad/models/gpt.h"
#include "handgrad/models/model.h"
#include "handgrad/nn/registry.h"
#include "handgrad/optim/registry.h"
#include "handgrad/train/history.h"

using namespace handgrad;
using io::ConfigError;
using io::Fields;

namespace {

class MyNorm final : public nn::Layer {
 public:
  MyNorm(std::int64_t width, double eps) : gain(param("gain", Tensor::ones({width}))), eps_(eps) {}
  Tensor forward(const Tensor& x) override {
    return gain * x / sqrt(mean(square(x), kLast, KeepDim::yes) + eps_);
  }
  Parameter& gain;

 private:
  double eps_;
};

std::unique_ptr<nn::Layer> make_my_norm(Fields& fields, std::int64_t width) {
  const double eps =
      fields.number("eps", {.doc = "added to the mean square", .fallback = 1e-5, .at_least = 0});
  return std::make_unique<MyNorm>(width, eps);
}

/// A registry of the test's own with what the program's has, so that tests do not change each other.
io::Registry<nn::Layer, std::int64_t> norms_with_mine() {
  io::Registry<nn::Layer, std::int64_t> registry = nn::norms();
  registry.add("my_norm", make_my_norm, "a norm of the test's own");
  return registry;
}

Fields model_fields(const std::string& model, io::Purpose purpose = io::Purpose::build) {
  return Fields(io::parse_json("{\"model\": " + model + "}", "toy.json"), {"toy.json"}, purpose);
}

std::string error_of(const std::string& model, io::Purpose purpose = io::Purpose::build) {
  return expect::message<ConfigError>([&] {
    Fields root = model_fields(model, purpose);
    Fields fields = root.object("model");
    models::registry().make(fields, {.vocab_size = 33});
  });
}

const std::string kToy = R"("context_length": 16, "emb_dim": 32, "n_heads": 4, "n_layers": 1)";

}  // namespace

TEST_CASE("registry: built-in norms by name, layer_norm when none is named") {
  CHECK(nn::norms().names() == std::vector<std::string>{"layer_norm", "rms_norm", "none"});
  for (const auto& [json, type, count] : std::vector<std::tuple<const char*, const char*, std::int64_t>>{
           {"{}", "layer_norm", 8},
           {R"({"type": "rms_norm", "eps": 1e-6})", "rms_norm", 4},
           {R"({"type": "none"})", "none", 0}}) {
    Fields fields(io::parse_json(json, ""));
    const auto norm = nn::norms().make(fields, 4);
    CHECK(norm->type() == type);
    CHECK(norm->parameter_count() == count);
  }
}

TEST_CASE("registry: an unknown type, with what was probably meant") {
  const auto norms = norms_with_mine();
  Fields root = model_fields(R"({"norm": {"type": "my_nrom"}})");
  Fields norm = root.object("model").object("norm");
  CHECK(expect::message<ConfigError>([&] { norms.make(norm, 4); }) ==
        "toy.json: /model/norm/type: unknown norm \"my_nrom\"; did you mean \"my_norm\"? (known: layer_norm, "
        "my_norm, "
        "none, rms_norm)");
  CHECK(error_of(R"({"type": "gtp"})") ==
        "toy.json: /model/type: unknown model \"gtp\"; did you mean \"gpt\"? (known: gpt)");
}

TEST_CASE("registry: a norm of the user's own, from its name to its parameters in a model") {
  const auto norms = norms_with_mine();
  Fields root = model_fields(R"({"norm": {"type": "my_norm", "eps": 1e-6}})");
  models::GptConfig config{.vocab_size = 5, .context_length = 4, .emb_dim = 4, .n_heads = 2, .n_layers = 1};
  config.norm = nn::maker(norms, root.object("model").object("norm"), 4);
  const models::GptModel model(config);
  CHECK(model.find_parameter("trf_blocks.0.norm2.gain") != nullptr);
  CHECK(model.find_parameter("final_norm.gain")->shape() == Shape{4});
  for (const auto& named : model.named_parameters())
    if (named.name == "final_norm.gain") CHECK(named.owner->type() == "my_norm");
}

TEST_CASE("registry: keys that a factory did not read are rejected") {
  CHECK(error_of("{" + kToy + R"(, "norm": {"epss": 1}})") ==
        "toy.json: /model/norm/epss: unknown key; did you mean \"eps\"? (known: composed, eps, type)");
  CHECK(error_of("{" + kToy + R"(, "norm": {"type": "none", "eps": 1}})") ==
        "toy.json: /model/norm/eps: unknown key (known: type)");
  CHECK(error_of("{" + kToy + R"(, "ff": {"activation": "gleu"}})") ==
        "toy.json: /model/ff/activation: unknown activation \"gleu\"; did you mean \"gelu\"? (known: gelu, "
        "gelu_exact, "
        "relu, sigmoid, silu, tanh)");
  CHECK(error_of("{" + kToy + R"(, "norm": {"eps": -1}})") ==
        "toy.json: /model/norm/eps: must be at least 0, got -1");
}

TEST_CASE("registry: names are new and not empty") {
  auto norms = norms_with_mine();
  CHECK(expect::message<ValueError>([&] { norms.add("none", make_my_norm); }) ==
        "registry: the type of a norm must be new and not empty, got \"none\"");
  CHECK(expect::message<ValueError>([&] { norms.add("", make_my_norm); }) ==
        "registry: the type of a norm must be new and not empty, got \"\"");
}

TEST_CASE("models: a GPT from its config") {
  Fields root =
      model_fields("{" + kToy + R"(, "type": "gpt", "drop_rate": 0.0, "qkv_bias": true, "init": "book",
      "norm": {"type": "rms_norm"}, "ff": {"hidden": 48, "activation": "silu"}})");
  Fields fields = root.object("model");
  const auto model = models::make(fields, {.vocab_size = 33}, 7);
  CHECK(model->type() == "gpt");
  CHECK(model->vocab_size() == 33);
  CHECK(model->context_length() == 16);
  CHECK(model->find_parameter("trf_blocks.0.ff.layers.0.weight")->shape() == Shape{48, 32});
  CHECK(model->find_parameter("trf_blocks.0.att.W_query.bias") != nullptr);
  CHECK(model->find_parameter("final_norm.shift") == nullptr);
  CHECK_NOTHROW(root.finish());
  CHECK(root.effective()["model"]["vocab_size"] == 33);

  const models::GptModel same({.vocab_size = 33,
                               .context_length = 16,
                               .emb_dim = 32,
                               .n_heads = 4,
                               .n_layers = 1,
                               .init = nn::Init::book},
                              7);
  CHECK(expect::same_bits(model->find_parameter("tok_emb.weight")->array(), same.tok_emb.weight.array()));
}

TEST_CASE("models: sizes that do not fit are rejected before anything is built (H79)") {
  for (const io::Purpose purpose : {io::Purpose::build, io::Purpose::check}) {
    CHECK(error_of(R"({"context_length": 16, "emb_dim": 100, "n_heads": 12, "n_layers": 1})", purpose) ==
          "toy.json: /model/n_heads: must divide emb_dim = 100, got 12");
    CHECK(error_of(R"({"context_length": 16, "emb_dim": 10, "n_heads": 3, "n_layers": 1})", purpose) ==
          "toy.json: /model/n_heads: must divide emb_dim = 10, got 3");
    CHECK(error_of(R"({"context_length": 16, "emb_dim": 8, "n_heads": 0, "n_layers": 1})", purpose) ==
          "toy.json: /model/n_heads: must be at least 1 and divide emb_dim = 8, got 0");
    CHECK(error_of("{" + kToy + R"(, "drop_rate": -0.1})", purpose) ==
          "toy.json: /model/drop_rate: must be at least 0 and less than 1, got -0.1");
    CHECK(error_of(R"({"emb_dim": 8})", purpose) ==
          "toy.json: /model/context_length: must be given: an integer, at least 1 and at most 2147483648");
    CHECK(error_of("{" + kToy + R"(, "nlayers": 1})", purpose) ==
          "toy.json: /model/nlayers: unknown key; did you mean \"n_layers\"? (known: context_length, "
          "drop_rate, emb_dim, "
          "ff, init, n_heads, n_layers, norm, qkv_bias, tie_weights, type, vocab_size)");
  }
}

TEST_CASE("models: a check builds nothing, and needs no vocabulary") {
  Fields root = model_fields(
      R"({"context_length": 1024, "emb_dim": 1024, "n_heads": 16, "n_layers": 1000000})", io::Purpose::check);
  Fields fields = root.object("model");
  CHECK(models::registry().make(fields, {}) == nullptr);
  Fields build = model_fields("{" + kToy + "}");
  Fields model = build.object("model");
  CHECK(expect::message<ConfigError>([&] { models::registry().make(model, {}); }) ==
        "toy.json: /model/vocab_size: must be given: an integer, at least 1 and at most 2147483648");
}

TEST_CASE("models: every key of a GPT is described, with those of every norm") {
  Fields root = Fields::describing();
  Fields model = root.object("model", "what is trained");
  CHECK(models::registry().make(model, {}) == nullptr);
  std::vector<std::string> lines;
  for (const io::Key& key : root.keys()) {
    CHECK(!key.doc.empty());
    lines.push_back(key.pointer + (key.of.empty() ? "" : " of " + key.of) +
                    (key.required ? " required" : " " + key.fallback));
  }
  CHECK(lines == std::vector<std::string>{"/model ",
                                          "/model/type \"gpt\"",
                                          "/model/vocab_size of gpt ",
                                          "/model/context_length of gpt required",
                                          "/model/emb_dim of gpt required",
                                          "/model/n_heads of gpt required",
                                          "/model/n_layers of gpt required",
                                          "/model/drop_rate of gpt 0.0",
                                          "/model/qkv_bias of gpt false",
                                          "/model/tie_weights of gpt false",
                                          "/model/init of gpt \"gpt2\"",
                                          "/model/norm of gpt ",
                                          "/model/norm/type of gpt \"layer_norm\"",
                                          "/model/norm/eps of layer_norm 1e-05",
                                          "/model/norm/composed of layer_norm false",
                                          "/model/norm/eps of rms_norm 1e-05",
                                          "/model/norm/composed of rms_norm false",
                                          "/model/ff of gpt ",
                                          "/model/ff/type of gpt \"feed_forward\"",
                                          "/model/ff/hidden of feed_forward ",
                                          "/model/ff/activation of feed_forward \"gelu\""});
}

TEST_CASE("optimizers: rows declare every state that is kept, and a user's row is read like ours") {
  struct Average final : optim::Optimizer {
    explicit Average(optim::Parameters parameters)
        : Optimizer(std::move(parameters), {{"square_avg", optim::Moment::second}}) {}
    std::string_view type() const override { return "test_average"; }
    double lr() const override { return 1; }
    double weight_decay() const override { return 0; }
    void update(const Job& job, std::int64_t begin, std::int64_t end) const override {
      for (std::int64_t i = begin; i < end; ++i) static_cast<float*>(job.state[0])[i] += 1;
    }
  };
  optim::optimizers().add(
      "test_average",
      [](io::Fields&, const optim::Parameters& parameters) { return std::make_unique<Average>(parameters); },
      "for this test", {"the average", {{"square_avg", optim::Moment::second}}});
  CHECK(optim::label_of("test_average") == "the average");
  CHECK(optim::label_of("adamw") == "AdamW");
  CHECK(optim::label_of("unknown") == "unknown");
  CHECK(optim::states_of(optim::Moment::first) == std::vector<std::string>{"momentum", "exp_avg"});
  CHECK(train::state_names(train::Quantity::second_moment) ==
        std::vector<std::string>{"exp_avg_sq", "square_avg"});
  for (const auto& row : optim::optimizers().rows()) {
    CAPTURE(row.type);
    Parameter value("value", Tensor::ones({3}));
    sum(value).backward();
    const nlohmann::json config =
        row.type == "sgd" ? nlohmann::json{{"momentum", 0.9}} : nlohmann::json::object();
    io::Fields fields(config);
    const auto optimizer = row.factory(fields, {{"value", &value, nullptr}});
    CHECK(optimizer->type() == row.type);
    optimizer->step(0.1);
    std::vector<std::string> kept, declared{"value.step"};
    for (const io::NamedArray& array : optimizer->state()) kept.push_back(array.name);
    for (const optim::OptimizerState& state : row.traits.states)
      declared.push_back(std::string("value.") + state.name);
    CHECK(kept == declared);
  }
}
