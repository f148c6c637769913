// Tensors, parameters and token ids as a user meets them.
#include "handgrad/core/tensor.h"

#include <sstream>

#include "expect.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/error.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parameter.h"
#include "handgrad/core/scope.h"

using namespace handgrad;

TEST_CASE("tensor: values and shapes never look alike") {
  const Tensor values = Tensor::of({2, 2, 6, 6});
  CHECK(values.shape() == Shape{4});
  CHECK(values.values() == std::vector<double>{2, 2, 6, 6});
  const Tensor rows = Tensor::of({{1, 2, 3}, {4, 5, 6}});
  CHECK(rows.shape() == Shape{2, 3});
  CHECK(Tensor::zeros({2, 4, 768}).numel() == 6144);
  CHECK(Tensor::ones({2}).values() == std::vector<double>{1, 1});
  CHECK(Tensor::scalar(3).item() == 3);
  CHECK(Tensor::scalar(3).rank() == 0);
  CHECK(rows.size(-1) == 3);
  CHECK_THROWS_AS(rows.size(2), ShapeError);
  CHECK_THROWS_AS(Tensor::of({{1, 2}, {3}}), ShapeError);
  CHECK_FALSE(Tensor().defined());
  std::ostringstream out;
  out << rows;
  CHECK(out.str() == "[[1, 2, 3], [4, 5, 6]]");
}

TEST_CASE("tensor: a leaf collects a gradient when told to, and forgets it when told not to") {
  Tensor x = Tensor::of({1, 2});
  CHECK_FALSE(x.needs_grad());
  x.requires_grad();
  sum(x * 3.0).backward();
  CHECK(x.grad().values() == std::vector<double>{3, 3});
  Tensor same = x;
  CHECK(same.has_grad());
  x.requires_grad(false);
  CHECK_FALSE(same.needs_grad());
  CHECK_FALSE(same.has_grad());
}

TEST_CASE("tensor: errors of a gradient that is not there say what to do") {
  const Tensor plain = Tensor::of({1, 2});
  CHECK(expect::message<GraphError>([&] { plain.grad(); }) ==
        "grad: this tensor has no gradient\n  tensor [2]\n  try: requires_grad() before the forward pass");
  const Tensor x = expect::leaf({1, 2});
  CHECK(expect::message<GraphError>([&] { x.grad(); }) ==
        "grad: this tensor has no gradient\n  tensor [2]\n  try: backward() of a loss that depends on it");
  Tensor y = x * 2.0;
  CHECK(expect::message<GraphError>([&] { y.grad(); }) ==
        "grad: this tensor has no gradient\n  tensor [2]\n"
        "  try: retain_grad() before backward(): interior gradients are dropped after use");
  CHECK(expect::message<GraphError>([&] { y.requires_grad(); }) ==
        "requires_grad: only a leaf can be told to; this tensor is the result of mul\n  tensor [2]\n"
        "  try: detach() it first");
  CHECK(expect::message<GraphError>([&] { x.node(); }) ==
        "node: no recorded operation made this tensor\n  tensor [2]");
  Tensor constant = plain;
  CHECK_THROWS_AS(constant.retain_grad(), GraphError);
  CHECK_THROWS_AS(constant.on_grad([](const Array&) {}), GraphError);
}

TEST_CASE("parameter: named, trainable, apart from the tensor it started from") {
  const Tensor ones = Tensor::ones({3});
  Parameter scale("scale", ones), gain("gain", ones), weight("weight", Tensor::zeros({2, 3}));
  CHECK(scale.name() == "scale");
  CHECK(scale.needs_grad());
  CHECK_FALSE(scale.array().shares_storage(gain.array()));
  scale.mutable_array().fill(2);
  CHECK(gain.values() == std::vector<double>{1, 1, 1});
  CHECK(ones.values() == std::vector<double>{1, 1, 1});
  CHECK_FALSE(scale.decay());
  CHECK(weight.decay());
}

TEST_CASE("parameter: freezing, and converting to another element type") {
  Parameter scale("scale", Tensor::ones({2}));
  sum(scale * 2.0).backward();
  CHECK(scale.has_grad());
  scale.to(DType::float64);
  CHECK(scale.dtype() == DType::float64);
  CHECK_FALSE(scale.has_grad());
  CHECK(scale.needs_grad());
  scale.freeze();
  CHECK(scale.frozen());
  scale.to(DType::float32);
  CHECK(scale.frozen());
  CHECK_FALSE((scale * 2.0).needs_grad());
}

TEST_CASE("ids: whole numbers of any shape") {
  const Ids ids = Ids::of({{1, 2}, {3, 4}});
  CHECK(ids.shape() == Shape{2, 2});
  CHECK(ids.size(-1) == 2);
  CHECK(ids.flatten().shape() == Shape{4});
  CHECK(ids.values() == std::vector<std::int32_t>{1, 2, 3, 4});
  CHECK(ids.reshape({1, -1}).array().shares_storage(ids.array()));
  CHECK(Ids({}, {0, 3}).numel() == 0);
  CHECK(expect::message<ShapeError>([] { Ids({1, 2}, {5}); }) == "ids: shape [5] needs 5 ids, got 2");
  CHECK(expect::message<DTypeError>([] { Ids::from(Array({2})); }) == "ids: must be int32, got float32");
}

TEST_CASE("error: fields, whole text, and the module in which it happened") {
  const ScopeGuard outer(scope_of("trf_blocks.3"));
  try {
    const ScopeGuard inner(scope_of("trf_blocks.3.norm1"));
    throw ShapeError("layer_norm", "scale must have shape [6], the last dimension of x, got [8]",
                     {{"x", Shape{2, 4, 6}}, {"scale", Shape{8}}, {"shift", DType::float64}},
                     "a scale of 6 numbers");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "layer_norm: scale must have shape [6], the last dimension of x, got [8]\n"
          "  x [2, 4, 6]   scale [8]   shift float64\n"
          "  try: a scale of 6 numbers\n"
          "  in: trf_blocks.3.norm1");
    CHECK(error.op() == "layer_norm");
    CHECK(error.message() == "scale must have shape [6], the last dimension of x, got [8]");
    REQUIRE(error.operands().size() == 3);
    CHECK(error.operands()[1].name == "scale");
    CHECK(error.operands()[1].text == "[8]");
    CHECK(error.advice() == "a scale of 6 numbers");
    CHECK(error.module_path() == "trf_blocks.3.norm1");
  }
  CHECK(current_scope().path == "trf_blocks.3");
}

TEST_CASE("scope: one object for a path, restored in order") {
  CHECK(&scope_of("a.b") == &scope_of(std::string("a.") + "b"));
  CHECK(scope_of("a").hash != scope_of("b").hash);
  CHECK(&scope_of("") == &current_scope());
  CHECK(current_scope().path.empty());
}

TEST_CASE("checks: element types that differ, undefined tensors and missing dimensions name the operation") {
  const Tensor x = Tensor::of({1, 2}), wide = Tensor::of({1, 2}, DType::float64), none;
  CHECK(expect::message<DTypeError>([&] { add(x, wide); }) ==
        "add: operands must have one element type, float32 or float64\n  a float32   b float64");
  CHECK(expect::message<DTypeError>([&] { add(x, none); }) == "add: b is undefined: it holds no numbers");
  CHECK(expect::message<DTypeError>([&] { sum(none); }) == "sum: x is undefined: it holds no numbers");
  CHECK(expect::message<DTypeError>([&] { sum(Tensor::constant(Array({2}, DType::int32))); }) ==
        "sum: numbers must be float32 or float64\n  x int32");
  CHECK(expect::message<ShapeError>([&] { sum(x, {1}); }) ==
        "sum: dimension must lie in -1..0, got 1\n  x [2]");
  CHECK(expect::message<ShapeError>([&] { softmax(Tensor::scalar(1), 0); }) ==
        "softmax: a scalar has no dimensions, got dimension 0\n  x []");
}
