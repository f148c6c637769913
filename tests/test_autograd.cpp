// The recorded graph and the backward pass.
#include "handgrad/core/autograd.h"

#include "expect.h"
#include "handgrad/core/error.h"
#include "handgrad/core/ops.h"

using namespace handgrad;

namespace {

constexpr DType f64 = DType::float64;

/// The same numbers, as an operation of the test's own.
Tensor passed(const char* op, const Tensor& x, Backward backward) {
  return record(op, x.array().copy(), {x}, {}, backward);
}

}  // namespace

TEST_CASE("autograd: an interior tensor that is used twice (H16)") {
  const Tensor a = expect::leaf({1});
  const Tensor b = a + a, c = b + b;
  c.backward();
  CHECK(a.grad().values() == std::vector<double>{4});
}

TEST_CASE("autograd: a second backward is an error that says how, or adds up (H17)") {
  Tensor x = expect::leaf({1});
  const Tensor y = x * x, z = y * y;
  z.backward();
  CHECK(x.grad().item() == 4);
  CHECK(expect::message<GraphError>([&] { z.backward(); }) ==
        "backward: this graph was already used (mul)\n  try: backward(RetainGraph::yes) the first time");
  CHECK(x.grad().item() == 4);

  x.zero_grad();
  const Tensor y2 = x * x, z2 = y2 * y2;
  z2.backward(RetainGraph::yes);
  z2.backward(RetainGraph::yes);
  CHECK(x.grad().item() == 8);
  x.zero_grad();
  z2.backward();
  CHECK(x.grad().item() == 4);
}

TEST_CASE("autograd: two losses may share a part of the graph only if it is kept") {
  const Tensor x = expect::leaf({3});
  const Tensor shared = x * x;
  const Tensor first = shared * 2.0, second = shared * 5.0;
  first.backward();
  CHECK_THROWS_AS(second.backward(), GraphError);
  CHECK(x.grad().item() == 12);
}

TEST_CASE("autograd: nodes run newest first, whatever the shape of the graph") {
  // The long way from x to z is walked to its end before x's gradient is complete.
  const Tensor x = expect::leaf({2}, f64);
  const Tensor a = x * 3.0;
  Tensor b = a;
  for (int i = 0; i < 5; ++i) b = b * b * 0.1 + a;
  const Tensor z = b + a * x;
  z.backward();
  double a_value = 6, value = a_value, slope = 3;
  for (int i = 0; i < 5; ++i) {
    slope = 0.2 * value * slope + 3;
    value = 0.1 * value * value + a_value;
  }
  CHECK(x.grad().item() == doctest::Approx(slope + 12).epsilon(1e-12));
}

TEST_CASE("autograd: mean of squares over a dimension that is not kept (H23)") {
  for (const int dim : {0, -1}) {
    const Tensor x = Tensor::ones({5}).requires_grad();
    const Tensor y = mean(square(x), dim);
    CHECK(y.rank() == 0);
    CHECK(y.item() == 1);
    y.backward();
    expect::near(x.grad(), {0.4, 0.4, 0.4, 0.4, 0.4});
  }
}

TEST_CASE("autograd: a saved array that was changed in place is an error that names it (H19)") {
  const Tensor a = expect::leaf({1, 2, 3});
  Tensor b = sigmoid(a);
  const std::uint32_t version = b.array().version();
  b.mutable_array().mutable_data<float>()[1] = 2;
  CHECK(expect::message<GraphError>([&] { sum(b).backward(); }) ==
        "sigmoid: 'y' was changed in place after the forward pass (version " + std::to_string(version + 1) +
            ", saved at " + std::to_string(version) +
            ")\n  y [3]\n  try: change a copy, or change it after backward()");
  CHECK_FALSE(a.has_grad());

  // What no backward reads may change.
  Tensor c = a * 2.0;
  const Tensor loss = sum(c);
  c.mutable_array().fill(0);
  loss.backward();
  CHECK(a.grad().values() == std::vector<double>{2, 2, 2});
}

TEST_CASE("autograd: a result without gradient between a leaf and the loss is an error that names it (H29)") {
  const Tensor x = expect::leaf({1, 2});
  const Tensor y = no_gradient("sign", "it is constant between its steps", x.array().copy(), {x});
  CHECK(expect::message<GraphError>([&] { sum(y * x).backward(); }) ==
        "backward: sign has no gradient: it is constant between its steps\n"
        "  try: detach() its result where the gradient should stop");
  CHECK(expect::message<GraphError>([&] { passed("lost", x, nullptr); }) ==
        "lost: record() must be given a backward function\n  try: no_gradient() for what has no derivative");
}

TEST_CASE("autograd: detach stops the gradient, NoGrad keeps no history (H103)") {
  const Tensor x = expect::leaf({3});
  const Tensor y = (x * x).detach() * x;
  y.backward();
  CHECK(x.grad().item() == 9);
  CHECK(grad_enabled());
  {
    const NoGrad outer;
    { const NoGrad inner; }
    CHECK_FALSE(grad_enabled());
    CHECK_FALSE(will_record({x}));
    const Tensor z = x * x * x;
    CHECK(z.item() == 27);
    CHECK_FALSE(z.needs_grad());
    CHECK_FALSE(z.has_node());
    CHECK(expect::message<GraphError>([&] { z.backward(); }) ==
          "backward: this tensor has no history: no input of it requires a gradient, or it was computed "
          "under NoGrad\n"
          "  tensor [1]");
  }
  CHECK(will_record({x}));
  CHECK_FALSE(will_record({Tensor::of({1})}));
}

TEST_CASE("autograd: what backward may be called on, and with what") {
  const Tensor x = expect::leaf({1, 2, 3});
  const Tensor y = x * 2.0;
  CHECK(expect::message<ShapeError>([&] { y.backward(); }) ==
        "backward: the loss must be one number\n  loss [3]\n"
        "  try: reduce it with sum() or mean(), or give the upstream gradient: backward(dy)");
  CHECK(expect::message<ShapeError>([&] { y.backward(Array::full({2}, 1)); }) ==
        "backward: the upstream gradient must have the tensor's shape and type\n"
        "  tensor [3]   dy [2]   tensor float32   dy float32");
  CHECK_THROWS_AS(y.backward(Array::full({3}, 1, f64)), ShapeError);
  CHECK_FALSE(x.has_grad());
  y.backward(Array::of({1, 10, 100}, {3}));
  CHECK(x.grad().values() == std::vector<double>{2, 20, 200});
  // A leaf is its own loss.
  const Tensor leaf = expect::leaf({5});
  leaf.backward();
  CHECK(leaf.grad().item() == 1);
}

TEST_CASE("autograd: gradients are not mixed up by numbers that are shared on the way") {
  const Tensor a = expect::leaf({1, 2}), b = expect::leaf({3, 4});
  const Array dy = Array::of({1, 10}, {2});
  const Tensor y = a + b;
  y.backward(dy, RetainGraph::yes);
  y.backward(dy);
  (a * 3.0).backward(dy);
  CHECK(a.grad().values() == std::vector<double>{5, 50});
  CHECK(b.grad().values() == std::vector<double>{2, 20});
  CHECK(dy.values() == std::vector<double>{1, 10});
}

TEST_CASE("autograd: zero_grad leaves no gradient, not zeros") {
  Tensor x = expect::leaf({1, 2});
  sum(x).backward();
  sum(x).backward();
  CHECK(x.grad().values() == std::vector<double>{2, 2});
  x.zero_grad();
  CHECK_FALSE(x.has_grad());
  CHECK_THROWS_AS(x.grad(), GraphError);
  sum(x * 0.0).backward();
  CHECK(x.has_grad());
  CHECK(x.grad().values() == std::vector<double>{0, 0});
}

TEST_CASE("autograd: interior gradients are dropped unless kept, and a kept one is that of the last pass") {
  const Tensor x = expect::leaf({1, 2});
  Tensor kept = x * 2.0;
  kept.retain_grad();
  const Tensor dropped = kept * 3.0, loss = sum(dropped);
  loss.backward(RetainGraph::yes);
  CHECK(kept.grad().values() == std::vector<double>{3, 3});
  CHECK_FALSE(dropped.has_grad());
  loss.backward();
  CHECK(kept.grad().values() == std::vector<double>{3, 3});
  CHECK(x.grad().values() == std::vector<double>{12, 12});
  // A pass that throws changes nothing.
  CHECK_THROWS_AS(loss.backward(), GraphError);
  CHECK(kept.grad().values() == std::vector<double>{3, 3});
}

TEST_CASE("autograd: a node can be read: name, what it saved, attributes, inputs, order") {
  const Tensor x = expect::leaf({1, 2, 3, 4}), constant = Tensor::of({2, 2, 2, 2});
  const Tensor y = x * constant, z = sum(y, {0});
  CHECK(std::string(y.node().op()) == "mul");
  CHECK(y.node().input_count() == 2);
  CHECK(y.node().input(0) == x.slot());
  CHECK(y.node().input(1) == nullptr);
  CHECK(y.node().no_gradient_reason() == nullptr);
  // d x needs b; d b is not wanted, so a is not kept.
  CHECK(y.node().has_saved("b"));
  CHECK_FALSE(y.node().has_saved("a"));
  CHECK(y.node().saved("b").values() == constant.values());
  CHECK(z.node().order() > y.node().order());
  CHECK(z.node().list("dims") == Shape{0});
  CHECK(expect::message<GraphError>([&] { y.node().saved("rstd"); }) ==
        "mul: it saved no array named 'rstd'");
  CHECK(expect::message<GraphError>([&] { y.node().number("eps"); }) ==
        "mul: there is no attribute named 'eps'");

  z.backward();
  CHECK_FALSE(y.node().has_saved("b"));
  CHECK(expect::message<GraphError>([&] { y.node().saved("b"); }) ==
        "mul: what it saved was released by an earlier backward\n  try: backward(RetainGraph::yes) the first "
        "time");
}

TEST_CASE("autograd: a graph keeps alive only the numbers that some backward needs") {
  const Tensor x = Tensor::constant(Array::full({1000, 1000}, 1)).requires_grad();
  const std::size_t before = [] {
    pool_trim();
    return pool_stats().bytes_from_system;
  }();
  Tensor y = x + 1.0;
  for (int i = 0; i < 20; ++i) y = y + 1.0;
  pool_trim();
  // Two arrays of 4 MB, not 21: y, and the one before it that has just been given back.
  CHECK(pool_stats().bytes_from_system - before < 6'000'000);
}

TEST_CASE("autograd: observers of tensors see complete gradients, leaves last") {
  std::vector<std::string> seen;
  Tensor x = expect::leaf({1, 2});
  Tensor y = x * 2.0;
  x.on_grad([&](const Array& g) { seen.push_back("x " + g.text()); });
  y.on_grad([&](const Array& g) { seen.push_back("y " + g.text()); });
  const Tensor loss = sum(y + y * 3.0);
  loss.backward(RetainGraph::yes);
  CHECK(seen == std::vector<std::string>{"y [4, 4]", "x [8, 8]"});
  loss.backward();
  CHECK(seen.back() == "x [16, 16]");
  CHECK(seen.size() == 4);
}

TEST_CASE("autograd: an observer of the graph sees every operation and every gradient") {
  struct Log : GraphObserver {
    std::vector<std::string> lines;
    void recorded(const Node& node, const Array& y) override {
      lines.push_back(std::string(node.op()) + " " + y.text() + " in " + node.scope().path);
    }
    void differentiating(const Node& node, const Array& dy) override {
      lines.push_back("d " + std::string(node.op()) + " " + dy.text() + " in " + current_scope().path);
    }
  } log;
  const Tensor x = expect::leaf({1, 2});
  {
    const GraphObserverGuard guard(log);
    const ScopeGuard scope(scope_of("norm1"));
    const Tensor y = x * 2.0;
    Tensor loss;
    {
      const ScopeGuard inner(scope_of("norm2"));
      loss = sum(y);
    }
    loss.backward();
    CHECK(current_scope().path == "norm1");
  }
  sum(x).backward();
  CHECK(log.lines == std::vector<std::string>{"mul [2, 4] in norm1", "sum 6 in norm2", "d sum 1 in norm2",
                                              "d mul [1, 1] in norm1"});
}

TEST_CASE("autograd: an error in a backward has the address of its operation, and leaves the thread ready") {
  const Tensor x = expect::leaf({1, 2});
  const auto fail = [](const Node& node, const Array& dy, GradSink&) {
    throw ValueError(node.op(), "cannot", {{"dy", dy.shape()}});
  };
  Tensor y;
  {
    const ScopeGuard scope(scope_of("trf_blocks.3.norm1"));
    y = passed("stumble", x * 2.0, fail);
  }
  Tensor interior = y * 1.0;
  CHECK(expect::message<ValueError>([&] { sum(interior).backward(); }) ==
        "stumble: cannot\n  dy [2]\n  in: trf_blocks.3.norm1");
  CHECK(current_scope().path.empty());
  CHECK_FALSE(interior.has_grad());
  CHECK_FALSE(y.has_grad());
  sum(x * 2.0).backward();
  CHECK(x.grad().values() == std::vector<double>{2, 2});
}

TEST_CASE("autograd: a backward inside of a backward is an error") {
  const Tensor x = expect::leaf({1});
  Tensor y = x * 2.0;
  y.on_grad([&](const Array&) { (x * 3.0).backward(); });
  CHECK(expect::message<GraphError>([&] {
          y.backward();
        }).find("a backward pass is already running on this thread") != std::string::npos);
  (x * 5.0).backward();
  CHECK(x.grad().item() == 5);
}

TEST_CASE("autograd: a gradient whose shape is not its input's is an error") {
  const Tensor x = expect::leaf({1, 2});
  const Tensor y =
      passed("bent", x, [](const Node&, const Array&, GradSink& sink) { sink.move(0, Array::full({3}, 1)); });
  CHECK(expect::message<GraphError>([&] { sum(y).backward(); }) ==
        "bent: its backward gave input 0 a gradient of another shape or type\n  input [2]   gradient [3]");
}

TEST_CASE("autograd: inputs that want no gradient are not asked for") {
  const Tensor x = expect::leaf({1, 2}), plain = Tensor::of({3, 4});
  Tensor frozen = expect::leaf({5, 6});
  frozen.requires_grad(false);
  const auto backward = [](const Node&, const Array& dy, GradSink& sink) {
    CHECK(sink.wants(0));
    CHECK_FALSE(sink.wants(1));
    CHECK_FALSE(sink.wants(2));
    sink.move(0, dy);
  };
  sum(record("three", x.array().copy(), {x, plain, frozen}, {}, backward)).backward();
  CHECK(x.grad().values() == std::vector<double>{1, 1});
  CHECK_FALSE(frozen.has_grad());
}
