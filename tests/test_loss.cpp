// From tokens in to the loss: embedding, dropout, cross-entropy.
#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/gradcheck.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"

using namespace handgrad;
using expect::exactly;
using expect::leaf;
using expect::near;
using expect::normal;
using expect::same_bits;

namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

// ---- cross_entropy

TEST_CASE("cross_entropy: logits too far apart for log(softmax) (H34)") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Tensor logits = Tensor::of({{-431, 279, 427}}, dtype).requires_grad();
    const Tensor loss = cross_entropy(logits, Ids::of({0}));
    CHECK(loss.shape() == Shape{});
    CHECK(loss.item() == 858);
    loss.backward();
    CHECK(logits.grad().value(0) == -1);
    CHECK(std::fabs(logits.grad().value(1)) < 1e-60);
    CHECK(logits.grad().value(2) == 1);
  }
}

TEST_CASE("cross_entropy: values and gradients by hand") {
  const Tensor logits =
      Tensor::of({{std::log(1.0), std::log(3.0)}, {std::log(1.0), std::log(4.0)}}).requires_grad();
  const Tensor loss = cross_entropy(logits, Ids::of({0, 1}));
  near(loss, {(std::log(4.0) - std::log(0.8)) / 2});
  loss.backward();
  near(logits.grad(), {-0.375, 0.375, 0.1, -0.1});
  CHECK(loss.node().number("divisor") == 2);
}

TEST_CASE("cross_entropy: every target ignored gives 0 and zero gradients (H36)") {
  const Tensor logits = leaf(normal({2, 5}, 1));
  const Tensor loss = cross_entropy(logits, Ids::of({kIgnoreIndex, kIgnoreIndex}));
  CHECK(loss.item() == 0);
  loss.backward();
  exactly(logits.grad(), std::vector<double>(10, 0.0));
}

TEST_CASE("cross_entropy: ignored rows do not count and do not move") {
  const Array all = normal({3, 5}, 2);
  const Tensor logits = leaf(all);
  cross_entropy(logits, Ids::of({4, -1, 2}), -1).backward();
  const Tensor kept =
      leaf(concat({slice(logits.detach(), 0, 0, 1), slice(logits.detach(), 0, 2, 3)}, 0).array());
  const Tensor loss = cross_entropy(kept, Ids::of({4, 2}));
  loss.backward();
  CHECK(cross_entropy(logits, Ids::of({4, -1, 2}), -1).item() == loss.item());
  const Tensor dlogits = Tensor::constant(logits.grad());
  exactly(slice(dlogits, 0, 1, 2), {0, 0, 0, 0, 0});
  CHECK(same_bits(concat({slice(dlogits, 0, 0, 1), slice(dlogits, 0, 2, 3)}, 0).array(), kept.grad()));
  // It moves no gradient that is there already.
  cross_entropy(logits, Ids::of({4, 0, 2}), -1).backward();
  const Array before = logits.grad().copy();
  cross_entropy(logits, Ids::of({4, -1, 2}), -1).backward();
  const auto middle = [](const Array& d) { return slice(Tensor::constant(d), 0, 1, 2).array(); };
  CHECK(same_bits(middle(logits.grad()), middle(before)));
  // An ignored row may even be NaN.
  const Tensor bad = Tensor::of({{kNaN, kNaN}, {0, 0}}).requires_grad();
  const Tensor finite = cross_entropy(bad, Ids::of({kIgnoreIndex, 1}));
  near(finite, {std::log(2.0)});
  finite.backward();
  near(bad.grad(), {0, 0, 0.5, -0.5});
}

TEST_CASE("cross_entropy: a target out of range is named (H37)") {
  const Tensor logits = Tensor::zeros({3, 5});
  CHECK(expect::message<IndexError>([&] {
          cross_entropy(logits, Ids::of({0, 1, -4}), -1);
        }) ==
        "cross_entropy: target must lie in 0..4 (or be -1, ignored), got -4 at position 2\n"
        "  logits [3, 5]   targets [3]");
  CHECK(expect::message<IndexError>([&] {
          cross_entropy(logits, Ids::of({0, 5, 1}));
        }) ==
        "cross_entropy: target must lie in 0..4 (or be -100, ignored), got 5 at position 1\n"
        "  logits [3, 5]   targets [3]");
  CHECK(expect::message<ShapeError>([&] {
          cross_entropy(logits, Ids::of({{0, 1, 2}}));
        }) ==
        "cross_entropy: targets must have the shape of logits without its last dimension, got [1, 3]\n"
        "  logits [3, 5]   targets [1, 3]");
  CHECK_THROWS_AS(cross_entropy(logits, Ids()), DTypeError);
  CHECK_THROWS_AS(cross_entropy(Tensor::scalar(1), Ids::of({0})), ShapeError);
}

TEST_CASE("cross_entropy: a logit of -inf costs nothing, or everything (H38)") {
  const Tensor logits = Tensor::of({{0, -kInf}}).requires_grad();
  const Tensor loss = cross_entropy(logits, Ids::of({0}));
  CHECK(loss.item() == 0);
  loss.backward();
  exactly(logits.grad(), {0, 0});
  CHECK(cross_entropy(logits, Ids::of({1})).item() == kInf);
}

TEST_CASE("cross_entropy: is the mean of -log_softmax at the target, in any number of dimensions") {
  const Tensor logits = Tensor::constant(normal({2, 3, 70}, 3, DType::float64, 0, 3));
  const Ids targets = Ids::of({{5, 0, 69}, {16, 17, 3}});
  const std::vector<double> logarithms = log_softmax(logits).values();
  double expected = 0;
  for (std::size_t i = 0; i < 6; ++i)
    expected -= logarithms[i * 70 + static_cast<std::size_t>(targets.data()[i])] / 6;
  CHECK(cross_entropy(logits, targets).item() == doctest::Approx(expected).epsilon(1e-14));
  const Tensor many = Tensor::constant(normal({300, 4}, 30, DType::float64));
  CHECK(cross_entropy(many, Ids(std::vector<std::int32_t>(300, 2), {300})).item() ==
        doctest::Approx(-mean(slice(log(softmax(many)), 1, 2, 3)).item()).epsilon(1e-14));
  const GradCheckReport report =
      check_gradients([&](const std::vector<Tensor>& in) { return cross_entropy(in[0], targets); }, {logits});
  INFO(report.text());
  CHECK(report.ok);
}

TEST_CASE("cross_entropy_by_count: two micro-batches with one divisor are one batch") {
  const Array logits = normal({4, 6}, 4);
  const Tensor whole = leaf(logits), parts = leaf(logits);
  const Tensor loss = cross_entropy(whole, Ids::of({1, 2, kIgnoreIndex, 0}));
  loss.backward();
  const Tensor first = cross_entropy_by_count(slice(parts, 0, 0, 1), Ids::of({1}), 3);
  const Tensor rest = cross_entropy_by_count(slice(parts, 0, 1, 4), Ids::of({2, kIgnoreIndex, 0}), 3);
  first.backward();
  rest.backward();
  CHECK(first.item() + rest.item() == doctest::Approx(loss.item()).epsilon(1e-6));
  CHECK(same_bits(whole.grad(), parts.grad()));
  CHECK_THROWS_AS(cross_entropy_by_count(whole, Ids::of({1, 2, 3, 0}), 0), ValueError);
}

TEST_CASE("cross_entropy: upstream gradient, accumulation, no rows") {
  const Array numbers = normal({3, 40}, 5);
  const Tensor once = leaf(numbers), twice = leaf(numbers);
  const Ids targets = Ids::of({39, 0, 7});
  (cross_entropy(once, targets) * 2).backward();
  (cross_entropy(twice, targets) + cross_entropy(twice, targets)).backward();
  CHECK(same_bits(once.grad(), twice.grad()));

  const Tensor none = leaf(Array::zeros({0, 4}));
  const Tensor loss = cross_entropy(none, Ids({}, {0}));
  CHECK(loss.item() == 0);
  loss.backward();
  CHECK(none.grad().shape() == Shape{0, 4});
}

TEST_CASE("cross_entropy: the same bits for any number of threads") {
  const Array numbers = normal({500, 333}, 6);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 500; ++i) ids.push_back(i * 7 % 333);
  const Ids targets(ids, {500});
  const int before = thread_count();
  Array gradient;
  double value = 0;
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    const Tensor logits = leaf(numbers);
    const Tensor loss = cross_entropy(logits, targets);
    loss.backward();
    if (threads == 1) value = loss.item(), gradient = logits.grad();
    CHECK(loss.item() == value);
    CHECK(same_bits(logits.grad(), gradient));
  }
  set_thread_count(before);
}

// ---- embedding

TEST_CASE("embedding: rows by id, and the error names the id (H40)") {
  const Tensor weight = Tensor::of({{1, 2}, {3, 4}, {5, 6}});
  const Tensor y = embedding(Ids::of({{2, 0}, {1, 1}}), weight);
  CHECK(y.shape() == Shape{2, 2, 2});
  exactly(y, {5, 6, 1, 2, 3, 4, 3, 4});
  CHECK(expect::message<IndexError>([&] {
          embedding(Ids::of({{0, 1}, {3, 0}}), weight);
        }) ==
        "embedding: id must lie in 0..2, the table has 3 rows, got 3 at position 2\n"
        "  ids [2, 2]   weight [3, 2]");
  CHECK_THROWS_AS(embedding(Ids::of({-1}), weight), IndexError);
  CHECK_THROWS_AS(embedding(Ids::of({0}), Tensor::of({1, 2})), ShapeError);
  CHECK_THROWS_AS(embedding(Ids(), weight), DTypeError);
}

TEST_CASE("embedding: an id that occurs twice collects both gradients (H41)") {
  const Tensor weight = leaf(Array::zeros({3, 1}));
  embedding(Ids::of({1, 1, 2}), weight).backward(Array::full({3, 1}, 1));
  exactly(weight.grad(), {0, 2, 1});
  embedding(Ids::of({0, 2}), weight).backward(Array::full({2, 1}, 1));  // added, rows without an id unchanged
  exactly(weight.grad(), {1, 2, 2});

  const int before = thread_count();
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 3000; ++i) ids.push_back(i * i % 11);
  const Array dy = normal({3000, 200}, 7);
  Array gradient;
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    const Tensor table = leaf(Array::zeros({11, 200}));
    embedding(Ids(ids, {3000}), table).backward(dy);
    if (threads == 1) gradient = table.grad();
    CHECK(same_bits(table.grad(), gradient));
  }
  set_thread_count(before);
}

TEST_CASE("embedding and output head share a table: both uses are added (H43)") {
  const Tensor table = Tensor::of({2, 3}, {2, 1}, DType::float64).requires_grad();
  const Tensor logits = linear(embedding(Ids::of({0}), table), table);
  const Tensor loss = cross_entropy(logits, Ids::of({1}));
  near(loss, {0.12692801}, 1e-8, 0);
  loss.backward();
  near(table.grad(), {0.11920292, -0.23840584}, 1e-8, 0);
}

// ---- dropout

TEST_CASE("dropout: zeros at the rate, the rest scaled, the gradient through the same elements") {
  set_random_context({.seed = 11});
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Tensor x = leaf(normal({301, 333}, 8, dtype));
    const Tensor y = dropout(x, 0.3);
    y.backward(Array::full(x.shape(), 1, dtype));
    std::int64_t dropped = 0;
    bool right = true;
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const double kept = y.array().value(i), slope = x.grad().value(i);
      dropped += kept == 0;
      const double scale =
          dtype == DType::float32 ? static_cast<double>(static_cast<float>(1 / 0.7)) : 1 / 0.7;
      right = right && slope == (kept == 0 ? 0 : scale);
      right = right && (kept == 0 || std::fabs(kept - x.array().value(i) / 0.7) <= 1e-6 * std::fabs(kept));
    }
    CHECK(right);
    CHECK(std::fabs(static_cast<double>(dropped) / static_cast<double>(x.numel()) - 0.3) < 0.006);
  }
}

TEST_CASE("dropout: element i is decided by random number i of the key") {
  const RandomContext context{.seed = 12, .step = 3, .micro_batch = 4, .rank = 5};
  set_random_context(context);
  const RandomKey key = next_random_key();
  for (const std::int64_t n : {1, 2, 5, 31, 32, 33, 511, 513, 200000}) {
    set_random_context(context);
    const std::vector<double> y = dropout(Tensor::ones({n}), 0.25).values();
    bool right = true;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint32_t bits =
          key.block(static_cast<std::uint64_t>(i) / 4)[static_cast<std::size_t>(i % 4)];
      right = right && (y[static_cast<std::size_t>(i)] != 0) == (bits >= 0x40000000U);
    }
    INFO("n ", n);
    CHECK(right);
  }
}

TEST_CASE("dropout: every call draws a new mask, and a repeated context the same one") {
  const Tensor x = Tensor::ones({1000});
  set_random_context({.seed = 13});
  const Array first = dropout(x, 0.5).array(), second = dropout(x, 0.5).array();
  CHECK_FALSE(same_bits(first, second));
  set_random_context({.seed = 13});
  CHECK(same_bits(dropout(x, 0.5).array(), first));
  set_random_context({.seed = 13, .step = 1});
  CHECK_FALSE(same_bits(dropout(x, 0.5).array(), first));
}

TEST_CASE("dropout: rate 0 is x itself, other rates have bounds (H60)") {
  const Tensor x = leaf(normal({4}, 9));
  CHECK(dropout(x, 0).array().shares_storage(x.array()));
  CHECK(dropout(x, 0).slot() == x.slot());
  CHECK(expect::message<ValueError>([&] { dropout(x, 1); }) ==
        "dropout: rate must lie in 0 <= rate < 1, got 1\n  x [4]");
  CHECK_THROWS_AS(dropout(x, -0.1), ValueError);
  CHECK_THROWS_AS(dropout(x, kNaN), ValueError);
}

TEST_CASE("dropout: gradients, and the same bits for any number of threads") {
  const GradCheckReport report = check_gradients(
      [](const std::vector<Tensor>& in) { return square(dropout(in[0], 0.4)) + dropout(in[0], 0.2); },
      {Tensor::constant(normal({3, 7}, 10, DType::float64))});
  INFO(report.text());
  CHECK(report.ok);
  const int before = thread_count();
  Array y;
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    set_random_context({.seed = 14});
    const Array now = dropout(Tensor::ones({300001}), 0.1).array();
    if (threads == 1) y = now;
    CHECK(same_bits(now, y));
  }
  set_thread_count(before);
}

TEST_CASE("detach: the same numbers, and the gradient stops") {
  const Tensor x = leaf({3});
  (detach(x * x) * x).backward(Array::full({1}, 1));
  exactly(x.grad(), {9});
  CHECK(detach(x).array().shares_storage(x.array()));
  CHECK_FALSE(detach(x).needs_grad());
}
