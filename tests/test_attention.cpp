#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/gradcheck.h"
#include "handgrad/core/kernels/attention.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"

using namespace handgrad;
using expect::exactly;
using expect::leaf;
using expect::near;
using expect::normal;
using expect::same_bits;
using expect::within_ulps;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN();

using Attention = Tensor (*)(const Tensor&, int, double);

struct Result {
  Array y, dqkv;
};

/// Both directions, in a fresh random context.
Result run(Attention attention, const Array& qkv, int heads, double drop_rate, const Array& dy) {
  set_random_context({.seed = 21, .step = 5});
  const Tensor x = leaf(qkv);
  const Tensor y = attention(x, heads, drop_rate);
  y.backward(dy);
  return {y.array(), x.grad()};
}

struct Case {
  std::int64_t B, T;
  int heads;
  std::int64_t D;
};

/// Every way in which a length or a head size can fail to fill vectors, tiles and blocks.
const std::vector<Case> kCases = {{1, 1, 1, 1},   {2, 2, 3, 5},    {1, 7, 2, 8},   {2, 16, 4, 8},
                                  {1, 17, 1, 16}, {1, 31, 2, 20},  {1, 33, 1, 3},  {1, 64, 2, 32},
                                  {1, 100, 1, 7}, {1, 128, 1, 33}, {1, 129, 2, 9}, {1, 200, 1, 64}};

Array rows_of(const Array& x, std::int64_t begin, std::int64_t end) {
  return slice(Tensor::constant(x), 1, begin, end).array();
}

}  // namespace

TEST_CASE("causal_attention: two positions by hand") {
  // D = 1, so scores are q * k. Row 0 sees itself only; row 1 scores 0 and ln 3, so it mixes 1/4 and 3/4.
  const Tensor qkv = Tensor::of({5, 0, 8, 1, std::log(3.0), 4}, {1, 2, 3}, DType::float64).requires_grad();
  const Tensor y = causal_attention(qkv, 1);
  near(y, {8, 5}, 1e-14, 0);
  near(y.node().saved("weights"), {1, 0, 0.25, 0.75}, 1e-15, 0);
  CHECK(same_bits(y.node().saved("qkv"), qkv.array()));
  y.backward(Array::of({0, 1}, {1, 2, 1}, DType::float64));
  // dp = v = [8, 4], their mean under p is 5: ds = [0.25 * 3, 0.75 * -1].
  near(qkv.grad(), {0, 0.75, 0.25, -0.75 * std::log(3.0), -0.75, 0.75}, 1e-14, 0);
}

TEST_CASE("causal_attention: fused equals composed, values and gradients, with dropout too") {
  for (const Case& c : kCases) {
    for (const double drop_rate : {0.0, 0.3}) {
      INFO("B ", c.B, " T ", c.T, " heads ", c.heads, " D ", c.D, " drop_rate ", drop_rate);
      const std::int64_t C = c.heads * c.D;
      const Array qkv = normal({c.B, c.T, 3 * C}, 1, DType::float64),
                  dy = normal({c.B, c.T, C}, 2, DType::float64);
      const Result fused = run(causal_attention, qkv, c.heads, drop_rate, dy);
      const Result composed = run(causal_attention_composed, qkv, c.heads, drop_rate, dy);
      within_ulps(fused.y, composed.y);
      within_ulps(fused.dqkv, composed.dqkv);

      const Result single =
          run(causal_attention, qkv.to(DType::float32), c.heads, drop_rate, dy.to(DType::float32));
      near(single.y, fused.y.values(), 5e-6, 1e-5);
      near(single.dqkv, fused.dqkv.values(), 5e-6, 1e-5);
    }
  }
}

TEST_CASE("causal_attention: gradients") {
  for (const Case& c : {Case{2, 5, 2, 3}, Case{1, 130, 1, 2}}) {
    const Tensor qkv = Tensor::constant(normal({c.B, c.T, 3 * c.heads * c.D}, 3, DType::float64));
    for (const double drop_rate : {0.0, 0.4}) {
      const GradCheckReport report = check_gradients(
          [&](const std::vector<Tensor>& in) { return causal_attention(in[0], c.heads, drop_rate); }, {qkv},
          {.elements = 120});
      INFO(report.text());
      CHECK(report.ok);
    }
  }
}

TEST_CASE("causal_attention: a position never depends on later ones, to the bit") {
  const Array qkv = normal({1, 200, 3 * 40}, 4), dy = normal({1, 200, 40}, 5);
  const Result all = run(causal_attention, qkv, 2, 0, dy);
  for (const std::int64_t T : {1, 16, 45, 128, 129}) {
    INFO("T ", T);
    const Result part = run(causal_attention, rows_of(qkv, 0, T), 2, 0, rows_of(dy, 0, T));
    CHECK(same_bits(part.y, rows_of(all.y, 0, T)));
    // Only the queries' gradient belongs to the row alone.
    const auto queries = [&](const Result& r) {
      return slice(Tensor::constant(rows_of(r.dqkv, 0, T)), 2, 0, 40).array();
    };
    CHECK(same_bits(queries(part), queries(all)));
  }
}

TEST_CASE("causal_attention: NaN in one position does not reach earlier ones, nor other heads") {
  for (const std::int64_t T : {20, 150}) {
    Array qkv = normal({1, T, 3 * 12}, 6);
    const Array dy = normal({1, T, 12}, 7);
    const Result clean = run(causal_attention, qkv, 2, 0, dy);
    const std::int64_t bad = T - 3;
    for (int i = 0; i < 36; i += 12)
      for (int j = 0; j < 6; ++j)
        qkv.mutable_data<float>()[bad * 36 + i + j] = std::numeric_limits<float>::quiet_NaN();
    const Result r = run(causal_attention, qkv, 2, 0, dy);
    CHECK(same_bits(rows_of(r.y, 0, bad), rows_of(clean.y, 0, bad)));
    CHECK(std::isnan(r.y.value(bad * 12)));
    CHECK(std::isnan(r.y.value(T * 12 - 12)));
    const auto second_head = [](const Array& y) { return slice(Tensor::constant(y), 2, 6, 12).array(); };
    CHECK(same_bits(second_head(r.y), second_head(clean.y)));
    // Queries before it keep their gradients.
    const auto queries = [&](const Array& d) {
      return slice(Tensor::constant(rows_of(d, 0, bad)), 2, 0, 12).array();
    };
    CHECK(same_bits(queries(r.dqkv), queries(clean.dqkv)));
  }
}

TEST_CASE("causal_attention: a row whose scores are all -inf gives zeros and zero gradients (H35)") {
  // Float32 products of 1e30 and -1e30 are -inf; row 1 sees one finite score as well.
  for (const Attention attention : {&causal_attention, &causal_attention_composed}) {
    const Tensor qkv = Tensor::of({1e30, -1e30, 3, 1e30, 0, 4}, {1, 2, 3}).requires_grad();
    const Tensor y = attention(qkv, 1, 0);
    exactly(y, {0, 4});
    y.backward(Array::of({1, 0}, {1, 2, 1}));
    exactly(qkv.grad(), {0, 0, 0, 0, 0, 0});
  }
}

TEST_CASE("causal_attention: scores beyond the range of exp (as H33)") {
  // As in the two positions by hand, but all scores of row 1 are 300 larger: exp(300) overflows float32.
  for (const Attention attention : {&causal_attention, &causal_attention_composed}) {
    const Tensor qkv = Tensor::of({0, 300, 8, 1, 300 + std::log(3.0), 4}, {1, 2, 3}).requires_grad();
    const Tensor y = attention(qkv, 1, 0);
    near(y, {8, 5}, 1e-4, 0);
    y.backward(Array::of({0, 1}, {1, 2, 1}));
    near(qkv.grad(), {0, 0.75, 0.25, -0.75 * std::log(3.0), -0.75, 0.75}, 5e-4, 0);
  }
}

TEST_CASE("causal_attention: probabilities are kept up to T = 128 and only when a gradient will want them") {
  const Tensor short_one = leaf(normal({1, 128, 3 * 8}, 8)), long_one = leaf(normal({1, 129, 3 * 8}, 8));
  const Array weights = causal_attention(short_one, 2).node().saved("weights");
  CHECK(weights.shape() == Shape{1, 2, 128, 128});
  near(sum(Tensor::constant(weights), kLast), std::vector<double>(256, 1.0));
  exactly(triu(Tensor::constant(weights), 1), std::vector<double>(2 * 128 * 128, 0.0));

  const Tensor y = causal_attention(long_one, 2, 0.1);
  for (const Node::Saved& saved : y.node().saved_arrays()) CHECK(saved.array.numel() <= long_one.numel());
  CHECK_FALSE(y.node().has_saved("weights"));
  const NoGrad no_grad;
  CHECK_FALSE(causal_attention(short_one, 2).has_node());
}

TEST_CASE("causal_attention: dropout (H60)") {
  const Tensor qkv = Tensor::constant(normal({2, 16, 3 * 32}, 9));
  set_random_context({.seed = 1});
  const Array first = causal_attention(qkv, 4, 0.2).array(), second = causal_attention(qkv, 4, 0.2).array();
  CHECK_FALSE(same_bits(first, second));
  // Evaluation is rate 0: no random number is used, so it is the same every time.
  const Array plain = causal_attention(qkv, 4).array();
  CHECK(same_bits(causal_attention(qkv, 4, 0).array(), plain));
  CHECK_FALSE(same_bits(first, plain));
  set_random_context({.seed = 1});
  causal_attention(qkv, 4);
  CHECK(same_bits(causal_attention(qkv, 4, 0.2).array(), first));
}

TEST_CASE("causal_attention: used twice, a zero upstream gradient, nothing at all") {
  const Array numbers = normal({1, 20, 3 * 8}, 10), dy = normal({1, 20, 8}, 11);
  const Tensor once = leaf(numbers), twice = leaf(numbers);
  causal_attention(once, 2).backward(dy);
  (causal_attention(twice, 2) + causal_attention(twice, 2)).backward(dy);
  CHECK(same_bits(twice.grad(), (Tensor::constant(once.grad()) * 2).array()));  // H28

  exactly(run(causal_attention, numbers, 2, 0.5, Array::zeros({1, 20, 8})).dqkv,
          std::vector<double>(480, 0.0));
  CHECK(run(causal_attention, Array::zeros({0, 5, 12}), 2, 0, Array::zeros({0, 5, 4})).dqkv.shape() ==
        Shape{0, 5, 12});
  CHECK(run(causal_attention, Array::zeros({2, 0, 12}), 2, 0, Array::zeros({2, 0, 4})).y.shape() ==
        Shape{2, 0, 4});
}

TEST_CASE("causal_attention: the same bits for any number of threads") {
  const int before = thread_count();
  for (const std::int64_t T : {100, 140}) {
    const Array qkv = normal({3, T, 3 * 64}, 12), dy = normal({3, T, 64}, 13);
    set_thread_count(1);
    const Result one = run(causal_attention, qkv, 4, 0.1, dy);
    for (const int threads : {2, 3}) {
      set_thread_count(threads);
      const Result many = run(causal_attention, qkv, 4, 0.1, dy);
      CHECK(same_bits(many.y, one.y));
      CHECK(same_bits(many.dqkv, one.dqkv));
    }
  }
  set_thread_count(before);
}

TEST_CASE("causal_attention: every instruction set gives the same numbers") {
  const Array qkv = normal({1, 45, 60}, 14), dy = normal({1, 45, 20}, 15);
  Result first, fused;
  expect::on_each_target([&](const std::string& target) {
    const Result here = run(causal_attention, qkv, 1, 0.1, dy);
    if (!first.y.defined()) first = here;
    near(here.y, first.y.values());
    near(here.dqkv, first.dqkv.values(), 1e-5);
    if (target == "baseline") return;  // without fused multiply-add
    if (!fused.y.defined()) fused = here;
    CHECK(same_bits(here.y, fused.y));
    CHECK(same_bits(here.dqkv, fused.dqkv));
  });
}

TEST_CASE(
    "causal_attention: each weight is dropped by the random number at its own position, however large") {
  // Scores of 0 weigh alike, and values of powers of two tell which weights stayed.
  constexpr std::int64_t T = 19;
  const std::vector<float> zeros(T, 0);
  std::vector<float> values, y(T, 0);
  for (int j = 0; j < T; ++j) values.push_back(std::ldexp(1.0f, j));
  const RandomKey key = random_key(1, 2, 3, 4);
  const kernels::DropMask drop = drop_mask(key, 0.5);
  const std::int64_t elements = HANDGRAD_ACTIVE(attention_scratch)(T, 1);
  const Scratch scratch(static_cast<std::size_t>(elements) * sizeof(float));
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{361}, (std::uint64_t{3} << 34) - 200}) {
    INFO("from ", first);
    HANDGRAD_ACTIVE(attention_forward<float>)
    ({{zeros.data(), zeros.data(), values.data(), 1, T, 1, 1.0, &drop, first, scratch.as<float>()},
      y.data(),
      1,
      nullptr});
    for (std::uint64_t i = 0; i < T; ++i) {
      double stayed = 0;
      for (std::uint64_t j = 0; j <= i; ++j) {
        const std::uint64_t position = first + i * T + j;
        if (key.block(position / 4)[position % 4] >= 0x80000000U) stayed += values[j];
      }
      CHECK(y[i] == doctest::Approx(2 * stayed / static_cast<double>(i + 1)).epsilon(1e-7 * T));
    }
  }
}

TEST_CASE("causal_attention: errors") {
  const Tensor qkv = Tensor::zeros({2, 4, 24});
  CHECK(expect::message<ShapeError>([&] { causal_attention(qkv, 3); }) ==
        "causal_attention: heads must be at least 1 and 3 * heads divide the last dimension of qkv, got "
        "heads = 3\n"
        "  qkv [2, 4, 24]");
  CHECK_THROWS_AS(causal_attention(qkv, 0), ShapeError);
  CHECK_THROWS_AS(causal_attention(Tensor::zeros({4, 24}), 2), ShapeError);
  CHECK(expect::message<ValueError>([&] { causal_attention_composed(qkv, 2, 1); }) ==
        "causal_attention_composed: drop_rate must lie in 0 <= drop_rate < 1, got 1\n  qkv [2, 4, 24]");
  CHECK_THROWS_AS(causal_attention(qkv, 2, kNaN), ValueError);
}
