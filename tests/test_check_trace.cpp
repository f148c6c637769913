// check and trace: comparing a user's model with ours, and every number of a pass by name.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "expect.h"
#include "handgrad/cli/bench.h"
#include "handgrad/core/autograd.h"
#include "handgrad/io/safetensors.h"
#include "handgrad/models/gpt.h"
#include "handgrad/nn/registry.h"
#include "handgrad/train/check.h"
#include "handgrad/view/trace.h"
#include "program.h"
#include "temporary_folder.h"

using namespace handgrad;
using nlohmann::json;

namespace {

/// 2 x, whose backward forgets the factor.
Tensor doubled_wrongly(const Tensor& x) {
  return record("doubled_wrongly", (x * 2).array(), {x}, {},
                [](const Node&, const Array& dy, GradSink& sink) { sink.move(0, dy.copy()); });
}

class WrongLayer final : public nn::Layer {
 public:
  Tensor forward(const Tensor& x) override { return doubled_wrongly(x) * gain; }
  Parameter& gain = param("gain", Tensor::ones({4}));
};

}  // namespace

TEST_CASE("check: every registered layer passes, a wrong backward does not") {
  const json none = json::object();
  for (const char* type : {"layer_norm", "rms_norm", "feed_forward"}) {
    const GradCheckReport report = train::check_layer(type, io::Fields(none), 8, {});
    CHECK_MESSAGE(report.ok, report.text());
    CHECK(report.error < (std::string(type) == "layer_norm" ? 1e-7 : 1e-6));
    CHECK(report.tensors.front().name == "input");
    CHECK(report.tensors.size() >= 2);
  }
  WrongLayer wrong;
  wrong.to(DType::float64);
  const GradCheckReport report = train::check_layer(wrong, 4, {});
  CHECK(!report.ok);
  CHECK(!report.tensors[0].ok);  // the input's gradient is half of what it should be
  CHECK(report.tensors[1].ok);
  CHECK(expect::message<ValueError>([&] {
          train::check_layer("layer_nrom", io::Fields(none), 4, {});
        }).starts_with("check: `layer`: unknown layer \"layer_nrom\"; did you mean \"layer_norm\"?"));
}

TEST_CASE("check: the toy's every tensor, as a table and as JSON") {
  const TemporaryFolder folder;
  const Outcome table = handgrad_in(folder.path(), "check " + config_path("toy.json") + " --elements 4");
  CHECK(table.status == 0);
  CHECK(table.out.find("\ntrf_blocks.0.norm1.scale          [32] ") != std::string::npos);
  CHECK(table.out.find("72 elements of 18 tensors: all right, worst error ") != std::string::npos);
  const json layer =
      handgrad_in(folder.path(), "check " + config_path("toy.json") + " --layer layer_norm --json").json();
  CHECK(layer["tensors"][0]["shape"] == json{2, 3, 32});  // the config's width
  CHECK(handgrad_in(folder.path(),
                    "check " + config_path("toy.json") + " --set model.norm.eps=-1 --layer layer_norm")
            .status == 2);
  const Outcome strict = handgrad_in(
      folder.path(), "check " + config_path("toy.json") + " --elements 4 --tolerance 1e-30 --json");
  CHECK(strict.status == 1);
  const json report = strict.json();
  CHECK(report["ok"] == false);
  CHECK(report["tensors"].size() == 18);
  CHECK(report["error"].get<double>() < 1e-6);
}

TEST_CASE("trace: every parameter, gradient and activation, and the lines of each LayerNorm") {
  const TemporaryFolder folder;
  REQUIRE(
      handgrad_in(folder.path(), "trace " + config_path("toy.json") + " --out a.st --dtype float64").status ==
      0);
  const io::SafetensorsReader file(folder.path() / "a.st");
  CHECK(file.find("loss")->shape == Shape({1}));
  CHECK(file.find("logits")->shape == Shape({16, 16, 33}));
  CHECK(file.find("param.out_head.weight")->shape == Shape({33, 32}));
  CHECK(file.find("grad.trf_blocks.0.att.W_key.weight")->shape == Shape({32, 32}));
  CHECK(file.find("act.trf_blocks.0.ff.layers.0")->shape == Shape({16, 16, 128}));
  CHECK(file.find("act.trf_blocks.0.drop_shortcut#2") != nullptr);  // called twice
  for (const char* line : {"mean", "variance", "deviation"})
    CHECK(file.find(std::string("act.final_norm.") + line)->shape == Shape({16, 16, 1}));

  // output = scale * normalized + shift, with the scale of ones and the shift of zeros that it begins with
  const auto output = file.read("act.final_norm").values(),
             normalized = file.read("act.final_norm.normalized").values();
  REQUIRE(output.size() == normalized.size());
  for (std::size_t i = 0; i < output.size(); ++i) CHECK(std::abs(output[i] - normalized[i]) < 1e-12);
  const auto variance = file.read("act.final_norm.variance").values(),
             deviation = file.read("act.final_norm.deviation").values();
  for (std::size_t i = 0; i < variance.size(); ++i)
    CHECK(std::abs(deviation[i] - std::sqrt(variance[i] + 1e-5)) < 1e-14);
}

TEST_CASE("a user's norm says what it is, a trace has its lines, and a matrix counts in the speed") {
  struct Centered final : nn::Layer {
    explicit Centered(std::int64_t width) : gain(param("gain", {width}, nn::constant(3))) {}
    Tensor forward(const Tensor& x) override {
      const Tensor centered = x - mean(x, kLast, KeepDim::yes);
      return gain * centered / sqrt(mean(square(centered), kLast, KeepDim::yes) + 0.25);
    }
    std::optional<nn::NormFormula> norm() const override { return nn::NormFormula{true, 0.25, &gain}; }
    Parameter& gain;
  };
  struct Gate final : nn::Layer {
    explicit Gate(std::int64_t width) : W_gate(param("W_gate", {width, width}, nn::normal(0.1))) {}
    Tensor forward(const Tensor& x) override { return x * sigmoid(matmul(x, W_gate)); }
    Parameter& W_gate;
  };
  models::GptConfig config{.vocab_size = 5, .context_length = 4, .emb_dim = 4, .n_heads = 2, .n_layers = 1};
  config.norm = [](std::int64_t width) { return std::make_unique<Centered>(width); };
  config.ff = [](std::int64_t width) { return std::make_unique<Gate>(width); };
  models::GptModel model(config);
  std::map<std::string, std::vector<double>> arrays;
  for (const auto& [name, array] :
       view::trace(model, {.rows = 1, .cols = 3, .inputs = {0, 1, 2}, .targets = {1, 2, 3}}))
    arrays[name] = array.values();
  const std::vector<double>&variance = arrays["act.final_norm.variance"],
        &deviation = arrays["act.final_norm.deviation"];
  REQUIRE(variance.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(deviation[i] == doctest::Approx(std::sqrt(variance[i] + 0.25)).epsilon(1e-6));
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(arrays["act.final_norm"][i] ==
          doctest::Approx(3 * arrays["act.final_norm.normalized"][i]).epsilon(1e-5));

  // Three passes of two operations for each number of four maps, the gate and the head, and attention's products.
  CHECK(cli::step_flops(model, 2, 3) == 6 * (6 * (4 * 16 + 16 + 20) + 12 * 3 * 4));
}

TEST_CASE("trace --compare finds what differs, and what only one of two has") {
  const TemporaryFolder folder;
  const std::string trace = "trace " + config_path("toy.json") + " --out ";
  REQUIRE(handgrad_in(folder.path(), trace + "a.st").status == 0);
  REQUIRE(handgrad_in(folder.path(), trace + "wide.st --dtype float64").status == 0);
  CHECK(handgrad_in(folder.path(), "trace --compare a.st a.st --tolerance 0").status == 0);
  CHECK(handgrad_in(folder.path(), "trace --compare a.st wide.st").status == 0);
  CHECK(handgrad_in(folder.path(), "trace --compare a.st wide.st --tolerance 1e-9").status == 1);

  // A user's implementation in which one weight is wrong, one tensor is missing and one has another shape.
  std::vector<io::NamedArray> arrays = io::SafetensorsReader(folder.path() / "a.st").read_all();
  std::erase_if(arrays, [](const io::NamedArray& named) { return named.name == "act.tok_emb"; });
  for (io::NamedArray& named : arrays) {
    if (named.name == "grad.final_norm.scale") named.array.mutable_data<float>()[7] += 0.5f;
    if (named.name == "loss") named.array = named.array.reshape({1, 1});
  }
  arrays.push_back({"extra", Tensor::of({1, 2}).array()});
  io::write_safetensors(folder.path() / "b.st", arrays);
  const Outcome outcome = handgrad_in(folder.path(), "trace --compare a.st b.st");
  CHECK(outcome.status == 1);
  CHECK(outcome.out.find("only in A    act.tok_emb\n") != std::string::npos);
  CHECK(outcome.out.find("only in B    extra\n") != std::string::npos);
  CHECK(outcome.out.find("other shape  loss: [1] and [1, 1]\n") != std::string::npos);
  CHECK(outcome.out.find("1 of 69 tensors differ by more than 1e-05") != std::string::npos);
  const view::TraceComparison comparison =
      view::compare_traces(folder.path() / "a.st", folder.path() / "b.st");
  const auto found = std::find_if(comparison.differences.begin(), comparison.differences.end(),
                                  [](const auto& d) { return d.absolute > 0; });
  REQUIRE(found != comparison.differences.end());
  CHECK(found->name == "grad.final_norm.scale");
  CHECK(found->worst == 7);
  CHECK(found->absolute == doctest::Approx(0.5));
}

TEST_CASE("trace: a batch file and weights of a run") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "batch.json") << R"({"inputs": [[1, 2, 3]], "targets": [[2, 3, 4]]})";
  const std::string toy = config_path("toy.json");
  REQUIRE(handgrad_in(folder.path(), "train " + toy + " --quiet --set train.steps=3 --out run").status == 0);
  REQUIRE(handgrad_in(folder.path(), "trace run --batch batch.json --out a.st").status == 0);
  REQUIRE(handgrad_in(folder.path(),
                      "trace " + toy + " --weights run/checkpoints/step-000003 --batch batch.json --out b.st")
              .status == 0);
  CHECK(read_file(folder.path() / "a.st") == read_file(folder.path() / "b.st"));
  CHECK(io::SafetensorsReader(folder.path() / "a.st").find("logits")->shape == Shape({1, 3, 33}));
}
