// Modules: names, order, sharing, modes, and observers.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/ops.h"
#include "handgrad/io/pattern.h"
#include "handgrad/nn/activation.h"
#include "handgrad/nn/embedding.h"
#include "handgrad/nn/layer_norm.h"
#include "handgrad/nn/linear.h"
#include "handgrad/nn/module.h"
#include "handgrad/nn/sequential.h"
#include "handgrad/view/summary.h"

using namespace handgrad;

namespace {

/// A norm as a user writes it.
class MyNorm final : public nn::Layer {
 public:
  explicit MyNorm(std::int64_t width, double eps = 1e-5)
      : gain(param("gain", Tensor::ones({width}))), eps_(eps) {}
  Tensor forward(const Tensor& x) override {
    return gain * x / sqrt(mean(square(x), kLast, KeepDim::yes) + eps_);
  }
  Parameter& gain;

 private:
  double eps_;
};

/// Own parameter after a child in the source, two levels, a dropout, and a tied output.
class Small final : public nn::Layer {
 public:
  Small()
      : table(child<nn::Embedding>("table", 3, 2)),
        body(child<nn::Sequential>("body")),
        offset(param("offset", Tensor::zeros({2}))),
        head(child<nn::Linear>("head", table.weight)) {
    body.add<nn::Linear>(2, 2);
    body.add<nn::Dropout>(0.5);
    body.add<MyNorm>(2);
  }
  Tensor forward(const Tensor& x) override { return head(body(x) + offset); }

  nn::Embedding& table;
  nn::Sequential& body;
  Parameter& offset;
  nn::Linear& head;
};

std::vector<std::string> names_of(const nn::Module& module, nn::TiedNames names = nn::TiedNames::first) {
  std::vector<std::string> found;
  for (const auto& named : module.named_parameters(names)) found.push_back(named.name);
  return found;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("module: parameters have full names in a fixed order, tied ones once (H44)") {
  const Small model;
  CHECK(names_of(model) == Names{"offset", "table.weight", "body.0.weight", "body.0.bias", "body.2.gain"});
  CHECK(names_of(model, nn::TiedNames::all) ==
        Names{"offset", "table.weight", "body.0.weight", "body.0.bias", "body.2.gain", "head.weight"});
  CHECK(names_of(model.body) == Names{"0.weight", "0.bias", "2.gain"});
  CHECK(model.parameter_count() == 2 + 6 + 4 + 2 + 2);
  CHECK(model.parameters().size() == 5);
  CHECK(model.named_parameters()[4].owner->type() == "my_norm");
}

TEST_CASE("module: finds parameters under each name, and modules") {
  Small model;
  CHECK(model.find_parameter("body.2.gain") != nullptr);
  CHECK(model.find_parameter("head.weight") == &model.table.weight);
  CHECK(model.find_parameter("body.2.gian") == nullptr);
  CHECK(model.find_module("") == &model);
  CHECK(model.find_module("body.0")->type() == "linear");
  CHECK(model.find_module("body.9") == nullptr);
  Names paths;
  for (const auto& named : model.modules()) paths.push_back(named.path + ":" + named.module->type());
  CHECK(paths == Names{":small", "table:embedding", "body:sequential", "body.0:linear", "body.1:dropout",
                       "body.2:my_norm", "head:linear"});
}

TEST_CASE("module: a path follows when a module is hung up") {
  auto inner = std::make_unique<nn::Sequential>();
  nn::Linear& linear = inner->add<nn::Linear>(2, 2);
  CHECK(inner->path() == "");
  CHECK(linear.path() == "0");
  nn::Sequential outer;
  outer.add(std::move(inner));
  CHECK(linear.path() == "0.0");
  CHECK(&linear.scope() == &scope_of("0.0"));
}

TEST_CASE("module: names must be new, not empty and without a dot") {
  struct Bad final : nn::Module {
    explicit Bad(const std::string& second) {
      param("scale", Tensor::ones({1}));
      child<nn::Dropout>("drop", 0.5);
      param(second, Tensor::ones({1}));
    }
  };
  CHECK(expect::message<ValueError>([] { Bad("scale"); }) ==
        "module: the name of a parameter or child of bad must be new in its module, got \"scale\"");
  CHECK(expect::message<ValueError>([] { Bad("drop"); }) ==
        "module: the name of a parameter or child of bad must be new in its module, got \"drop\"");
  CHECK(expect::message<ValueError>([] { Bad("a.b"); }) ==
        "module: the name of a parameter or child of bad must have a letter and no dot, got \"a.b\"");
  CHECK(expect::message<ValueError>([] { Bad(""); }) ==
        "module: the name of a parameter or child of bad must have a letter and no dot, got \"\"");
  nn::Sequential layers;
  CHECK(expect::message<ValueError>([&] { layers.add(std::unique_ptr<nn::Layer>()); }) ==
        "module: child \"0\" of sequential must be a module, got nullptr");
}

TEST_CASE("module: layers that hang nowhere do not run inside another (H30)") {
  static_assert(!std::is_copy_constructible_v<nn::Linear> && !std::is_move_constructible_v<nn::Linear>,
                "a plain vector of layers does not compile");
  struct Stray final : nn::Layer {
    std::vector<std::unique_ptr<nn::Linear>> layers;
    Stray() {
      for (int i = 0; i < 2; ++i) layers.push_back(std::make_unique<nn::Linear>(4, 4));
    }
    Tensor forward(const Tensor& x) override { return (*layers[1])((*layers[0])(x)); }
  };
  Stray stray;
  CHECK(expect::message<GraphError>([&] {
          stray(Tensor::ones({1, 4}));
        }) ==
        "linear: a module that another one calls must be declared with child(), or its parameters are not "
        "trained\n"
        "  try: child<Linear>(\"name\", in, out) instead of a member, a pointer or a vector");
  CHECK_NOTHROW((*stray.layers[0])(Tensor::ones({1, 4})));  // alone it may run

  nn::Sequential right;
  right.add<nn::Linear>(4, 4);
  right.add<nn::Linear>(4, 4);
  CHECK(right.parameters().size() == 4);
  CHECK(right.parameter_count() == 40);
  sum(right(Tensor::ones({1, 4}))).backward();
  for (Parameter* parameter : right.parameters()) CHECK(parameter->has_grad());
  right.zero_grad();
  for (Parameter* parameter : right.parameters()) CHECK(!parameter->has_grad());
}

TEST_CASE("module: training and evaluation reach every layer, and EvalMode puts each back") {
  Small model;
  auto* dropout = model.find_module("body.1");
  CHECK(dropout->training());
  dropout->eval();
  {
    const nn::EvalMode guard(model);
    for (const auto& named : model.modules()) CHECK(!named.module->training());
  }
  CHECK(model.training());
  CHECK(model.body.training());
  CHECK(!dropout->training());
  model.eval();
  CHECK(!model.head.training());
  model.train();
  CHECK(dropout->training());
}

TEST_CASE("module: freezing by pattern, and a pattern that means nothing") {
  Small model;
  CHECK(model.freeze({"gain", "body.0.*"}) == Names{"body.0.weight", "body.0.bias", "body.2.gain"});
  CHECK(model.find_parameter("body.2.gain")->frozen());
  CHECK(!model.offset.frozen());
  Small tied;
  CHECK(tied.freeze({"head.weight"}) == Names{"table.weight"});
  CHECK(expect::message<ValueError>([&] {
          tied.freeze({"offset", "*.scal"});
        }) ==
        "freeze: each pattern must match a parameter, got \"*.scal\"\n"
        "  try: a name, a part of one (scale, norm1), or a pattern (*.norm1.*)");
  CHECK(!tied.offset.frozen());  // all patterns are checked before anything changes
}

TEST_CASE("module: patterns for names") {
  CHECK(io::matches("scale", "trf_blocks.0.norm1.scale"));
  CHECK(io::matches("norm1.scale", "trf_blocks.0.norm1.scale"));
  CHECK(io::matches("scale", "scale"));
  CHECK(!io::matches("ale", "trf_blocks.0.norm1.scale"));
  CHECK(io::matches("norm1", "trf_blocks.0.norm1.scale"));
  CHECK(io::matches("trf_blocks.0", "trf_blocks.0.norm1.scale"));
  CHECK(!io::matches("trf_blocks.0", "trf_blocks.01.trf_blocks"));
  CHECK(io::matches("0", "trf_blocks.10.ff.0.weight"));
  CHECK(!io::matches("", "scale"));
  CHECK(io::matches("*.scale", "trf_blocks.0.norm1.scale"));
  CHECK(!io::matches("*.scale", "scale"));
  CHECK(io::matches("trf_blocks.?.norm*", "trf_blocks.0.norm1.scale"));
  CHECK(!io::matches("trf_blocks.?.norm*", "trf_blocks.10.norm1.scale"));
  CHECK(io::matches("*a*a*a*a*", std::string(30, 'a')));
  CHECK(!io::matches("*a*a*a*a*b", std::string(2000, 'a')));
  CHECK(io::matches("*", ""));
  CHECK(io::is_end_of("norm1", "trf_blocks.0.norm1"));
  CHECK(io::is_end_of("norm1", "norm1"));
  CHECK(!io::is_end_of("norm1", "trf_blocks.0.norm1.scale"));
  CHECK(!io::is_end_of("m1", "trf_blocks.0.norm1"));
  CHECK(!io::is_end_of("", "norm1"));
}

TEST_CASE("module: converts its parameters") {
  Small model;
  model.to(DType::float64);
  for (const Parameter* parameter : model.parameters()) CHECK(parameter->dtype() == DType::float64);
  sum(model(Tensor::ones({1, 2}, DType::float64))).backward();
  CHECK(model.table.weight.grad().dtype() == DType::float64);
}

TEST_CASE("module: the summary table") {
  Small model;
  model.offset.freeze();
  CHECK(view::summary(model) ==
        "parameter              shape  count  decay   in\n"
        "offset                   [2]      2  frozen  small\n"
        "table.weight          [3, 2]      6  yes     embedding\n"
        "body.0.weight         [2, 2]      4  yes     linear\n"
        "body.0.bias              [2]      2  no      linear\n"
        "body.2.gain              [2]      2  no      my_norm\n"
        "5 parameters                     16  of them 6 without decay\n");
}

TEST_CASE("module: blocks that are alike share a line of the summary table") {
  nn::Sequential model;
  for (int block = 0; block < 3; ++block) model.add<nn::LayerNorm>(2);
  model.add<nn::LayerNorm>(3);
  CHECK(view::summary(model) ==
        "parameter               shape  count  decay   in\n"
        "*.scale               [2] x 3      6  no      layer_norm\n"
        "*.shift               [2] x 3      6  no      layer_norm\n"
        "3.scale                   [3]      3  no      layer_norm\n"
        "3.shift                   [3]      3  no      layer_norm\n"
        "8 parameters                      18  of them 18 without decay\n");
}

TEST_CASE("module: observers see every output with its place, inner ones first") {
  struct Notes final : nn::ModuleObserver {
    Names seen;
    void input(const nn::Module& module, const Tensor& x) override {
      seen.push_back("in " + module.path() + " " + x.shape().text());
    }
    void output(const nn::Module& module, const Tensor& y) override {
      seen.push_back("out " + module.path() + " " + y.shape().text());
    }
  } notes;
  Small model;
  int seen = 0;
  model.body.on_output([&](const Tensor& y) { seen += static_cast<int>(y.numel()); });
  {
    const nn::ModuleObserverGuard guard(notes);
    model(Tensor::ones({1, 2}));
  }
  CHECK(notes.seen == Names{"in  [1, 2]", "in body [1, 2]", "in body.0 [1, 2]", "out body.0 [1, 2]",
                            "in body.1 [1, 2]", "out body.1 [1, 2]", "in body.2 [1, 2]", "out body.2 [1, 2]",
                            "out body [1, 2]", "in head [1, 2]", "out head [1, 3]", "out  [1, 3]"});
  CHECK(seen == 2);
  model(Tensor::ones({4, 2}));
  CHECK(notes.seen.size() == 12);
  CHECK(seen == 2 + 8);
}

TEST_CASE("module: errors and recorded operations carry the module path") {
  Small model;
  const std::string text = expect::message<ShapeError>([&] { model(Tensor::ones({1, 5})); });
  CHECK(text.find("\n  in: body.0") != std::string::npos);
  const Tensor y = model(Tensor::ones({1, 2}));
  CHECK(y.node().scope().path == "head");
  CHECK(current_scope().path == "");
}
