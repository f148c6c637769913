#include "handgrad/core/random.h"

#include <bit>
#include <cmath>
#include <vector>

#include "handgrad/core/scope.h"

namespace handgrad {
namespace {

constexpr std::uint64_t mix(std::uint64_t h) {  // the finalizer of splitmix64: every bit reaches every bit
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

/// The context of a thread, with the number of random operations that ran under each module path.
struct ContextState {
  RandomContext context;
  std::vector<std::pair<const Scope*, std::uint64_t>> calls;
};

thread_local ContextState context_state;

}  // namespace

std::array<std::uint32_t, 4> philox4x32(const std::array<std::uint32_t, 4>& counter,
                                        const std::array<std::uint32_t, 2>& key) {
  std::array<std::uint32_t, 4> c = counter;
  std::uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

RandomKey random_key(std::uint64_t seed, std::uint64_t stream, std::uint32_t step, std::uint32_t micro_batch,
                     std::uint32_t rank) {
  const std::uint64_t h = mix(mix(mix(seed + 0x9e3779b97f4a7c15ULL) ^ stream) + rank);
  return {{static_cast<std::uint32_t>(h), static_cast<std::uint32_t>(h >> 32)}, step, micro_batch};
}

void set_random_context(const RandomContext& context) {
  context_state.context = context;
  context_state.calls.clear();
}

const RandomContext& random_context() { return context_state.context; }

RandomKey next_random_key() {
  const Scope& scope = current_scope();
  auto& calls = context_state.calls;
  auto found = calls.begin();
  while (found != calls.end() && found->first != &scope) ++found;
  if (found == calls.end()) found = calls.insert(calls.end(), {&scope, 0});
  const std::uint64_t call = found->second++;
  const RandomContext& c = context_state.context;
  return random_key(c.seed, mix(scope.hash + call), c.step, c.micro_batch, c.rank);
}

Array to_array(const RandomKey& key) {
  Array a({4}, DType::int32);
  auto* words = a.mutable_data<std::int32_t>();
  words[0] = std::bit_cast<std::int32_t>(key.key[0]);
  words[1] = std::bit_cast<std::int32_t>(key.key[1]);
  words[2] = std::bit_cast<std::int32_t>(key.step);
  words[3] = std::bit_cast<std::int32_t>(key.micro_batch);
  return a;
}

RandomKey random_key_of(const Array& array) {
  const auto* words = array.data<std::int32_t>();
  return {{std::bit_cast<std::uint32_t>(words[0]), std::bit_cast<std::uint32_t>(words[1])},
          std::bit_cast<std::uint32_t>(words[2]),
          std::bit_cast<std::uint32_t>(words[3])};
}

std::uint32_t Random::bits() {
  if (position_ % 4 == 0) block_ = key_.block(position_ / 4);
  return block_[position_++ % 4];
}

double Random::uniform() {
  const std::uint64_t high = bits() >> 5, low = bits() >> 6;  // 27 + 26 bits
  return static_cast<double>(high << 26 | low) * 0x1p-53;
}

double Random::normal() {
  const double radius = std::sqrt(-2.0 * portable_log(1.0 - uniform()));
  return radius * portable_cos_turns(uniform());
}

std::uint64_t Random::below(std::uint64_t n) {
  const std::uint64_t excess = (0 - n) % n;  // values from here on appear equally often
  for (;;) {
    const std::uint64_t high = bits(), low = bits();  // in this order, which one expression would leave open
    const std::uint64_t value = high << 32 | low;
    if (value >= excess) return value % n;
  }
}

void Random::set_position(std::uint64_t position) {
  position_ = position;
  if (position % 4 != 0) block_ = key_.block(position / 4);
}

double portable_log(double x) {
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172.
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int e = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++e;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double series = 0;
  for (int k = 21; k >= 3; k -= 2) series = (series + 1.0 / k) * z;
  // ln 2 in two parts: e times the first, which has 32 bits, is exact.
  constexpr double kLn2High = 0.69314718036912382, kLn2Low = 1.9082149292705877e-10;
  return e * kLn2High + (2.0 * (s + s * series) + e * kLn2Low);
}

double portable_cos_turns(double turns) {
  // An eighth of a turn at a time: r in [-1/8, 1/8] turns around the nearest quarter.
  const int quarter = static_cast<int>(turns * 4.0 + 0.5);
  const double r = (turns - quarter * 0.25) * 6.283185307179586;
  const double z = r * r;
  double cosine = 0, sine = 0;
  for (int k = 18; k >= 2; k -= 2) cosine = (1.0 + cosine) * -z / (k * (k - 1));
  for (int k = 19; k >= 3; k -= 2) sine = (1.0 + sine) * -z / (k * (k - 1));
  cosine += 1.0;
  sine = r + r * sine;
  switch (quarter % 4) {
    case 0:
      return cosine;
    case 1:
      return -sine;
    case 2:
      return -cosine;
    default:
      return sine;
  }
}

}  // namespace handgrad
