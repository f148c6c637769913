// Random numbers: the published vectors of Philox, and numbers that depend on their address alone.
#include "handgrad/core/random.h"

#include <algorithm>
#include <set>

#include "expect.h"
#include "handgrad/core/scope.h"

using namespace handgrad;

namespace {

using Words = std::array<std::uint32_t, 4>;

double sample_moment(const std::vector<double>& values, double center, int power) {
  double sum = 0;
  for (const double v : values) sum += std::pow(v - center, power);
  return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("random: Philox4x32-10 gives its published vectors") {  // Random123, tests/kat_vectors
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random: the same numbers on every machine") {
  Random random(2266);
  CHECK(random.bits() == 0xcbe0edfa);
  CHECK(random.uniform() == 0.29565369291486454);
  CHECK(random.normal() == 0.9112067131558198);
  CHECK(random.below(1000000) == 879292);
}

TEST_CASE("random: a key is decided by each of its parts") {
  std::set<std::pair<std::array<std::uint32_t, 2>, std::pair<std::uint32_t, std::uint32_t>>> keys;
  const auto insert = [&](const RandomKey& key) { keys.insert({key.key, {key.step, key.micro_batch}}); };
  insert(random_key(1, 2, 3, 4, 5));
  insert(random_key(2, 2, 3, 4, 5));
  insert(random_key(1, 3, 3, 4, 5));
  insert(random_key(1, 2, 4, 4, 5));
  insert(random_key(1, 2, 3, 5, 5));
  insert(random_key(1, 2, 3, 4, 6));
  CHECK(keys.size() == 6);
  insert(random_key(1, 2, 3, 4, 5));
  CHECK(keys.size() == 6);
}

TEST_CASE("random: operations are keyed by module path and call, and start again with the context") {
  const auto same = [](const RandomKey& a, const RandomKey& b) { return a.key == b.key && a.step == b.step; };
  set_random_context({.seed = 1, .step = 5});
  const ScopeGuard drop1(scope_of("drop1"));
  const RandomKey first = next_random_key(), second = next_random_key();
  CHECK_FALSE(same(first, second));
  CHECK(first.step == 5);
  {
    const ScopeGuard drop2(scope_of("drop2"));
    CHECK_FALSE(same(next_random_key(), first));
  }
  // How often another module has drawn does not matter.
  set_random_context({.seed = 1, .step = 5});
  CHECK(same(next_random_key(), first));
  CHECK(same(next_random_key(), second));
  set_random_context({.seed = 2, .step = 5});
  CHECK_FALSE(same(next_random_key(), first));
  set_random_context({.seed = 1, .step = 5, .rank = 1});
  CHECK_FALSE(same(next_random_key(), first));
  CHECK(random_context().rank == 1);
  set_random_context({});

  const RandomKey back = random_key_of(to_array(first));
  CHECK(same(back, first));
  CHECK(back.micro_batch == first.micro_batch);
}

TEST_CASE("random: a sequence continues from a saved position") {
  for (const int drawn : {0, 1, 2, 3, 4, 7}) {
    Random random(3, 4);
    for (int i = 0; i < drawn; ++i) random.bits();
    Random resumed(3, 4);
    resumed.set_position(random.position());
    for (int i = 0; i < 9; ++i) CHECK(resumed.bits() == random.bits());
  }
}

TEST_CASE("random: uniform numbers fill 0 to 1, 1 left out") {
  Random random(11);
  std::vector<double> values(100000);
  for (double& v : values) v = random.uniform();
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  CHECK(*low >= 0);
  CHECK(*low < 1e-4);
  CHECK(*high < 1);
  CHECK(*high > 1 - 1e-4);
  CHECK(sample_moment(values, 0, 1) == doctest::Approx(0.5).epsilon(0.01));
  CHECK(sample_moment(values, 0.5, 2) == doctest::Approx(1.0 / 12).epsilon(0.01));
  CHECK(random.uniform(-3, -2) < -2);
}

TEST_CASE("random: normal numbers have the moments of the normal distribution") {
  Random random(12);
  const Array numbers = expect::normal_array({200000}, 0, 1, random, DType::float64);
  const std::vector<double> values = numbers.values();
  // Each moment of n samples strays by about sqrt(variance of its power / n): four of those.
  CHECK(std::abs(sample_moment(values, 0, 1)) < 4 * std::sqrt(1.0 / 200000));
  CHECK(std::abs(sample_moment(values, 0, 2) - 1) < 4 * std::sqrt(2.0 / 200000));
  CHECK(std::abs(sample_moment(values, 0, 3)) < 4 * std::sqrt(15.0 / 200000));
  CHECK(std::abs(sample_moment(values, 0, 4) - 3) < 4 * std::sqrt(96.0 / 200000));
  CHECK(std::abs(sample_moment(values, 0, 6) - 15) < 4 * std::sqrt(10170.0 / 200000));
  double lag = 0;
  for (std::size_t i = 1; i < values.size(); ++i) lag += values[i] * values[i - 1];
  CHECK(std::abs(lag / 200000) < 4 * std::sqrt(1.0 / 200000));

  Random again(12);
  const std::vector<double> scaled = expect::normal_array({4}, 10, 0.5, again, DType::float64).values();
  for (std::size_t i = 0; i < 4; ++i) CHECK(scaled[i] == doctest::Approx(10 + 0.5 * values[i]));
}

TEST_CASE("random: below(n) gives each number equally often") {
  Random random(13);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  for (const int count : counts) CHECK(std::abs(count - 10000) < 400);
  CHECK(random.below(1) == 0);
  // Of 3 * 2^62 values a plain remainder would give the lower third twice as often.
  const std::uint64_t n = 3ULL << 62;
  int low = 0;
  for (int i = 0; i < 3000; ++i) low += random.below(n) < (1ULL << 62);
  CHECK(std::abs(low - 1000) < 120);
}

TEST_CASE("random: our own logarithm and cosine against the platform's") {
  Random random(14);
  double worst_log = 0, worst_cosine = 0;
  for (int i = 0; i < 200000; ++i) {
    const double u = 1 - random.uniform();
    for (const double x :
         {u, std::ldexp(u, -static_cast<int>(random.below(1000))), 1 + (u - 0.5) * 1e-3, u * 1e300}) {
      const double right = std::log(x);
      if (right != 0) worst_log = std::max(worst_log, std::abs(portable_log(x) - right) / std::abs(right));
    }
    const double turns = random.uniform();
    const long double angle = 2 * 3.14159265358979323846264338327950288L * static_cast<long double>(turns);
    worst_cosine =
        std::max(worst_cosine, std::abs(portable_cos_turns(turns) - static_cast<double>(std::cos(angle))));
  }
  CHECK(worst_log <= 5e-16);
  CHECK(worst_cosine <= 4e-16);
  CHECK(portable_log(1) == 0);
  CHECK(portable_cos_turns(0) == 1);
  CHECK(portable_cos_turns(0.25) == 0);
  CHECK(portable_cos_turns(0.5) == -1);
  CHECK(portable_cos_turns(0.75) == 0);
}
