#include "handgrad/nn/init.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "handgrad/core/parallel.h"
#include "handgrad/core/random.h"
#include "handgrad/nn/embedding.h"
#include "handgrad/nn/linear.h"

namespace handgrad::nn {
namespace {

constexpr double kGpt2Deviation = 0.02;

thread_local Draw drawn = Draw::everything;

/// Where the numbers of a parameter come from.
struct Distribution {
  enum class Kind { uniform, normal } kind;
  double center, spread;  // half the width, or the deviation

  static Distribution uniform(double bound) { return {Kind::uniform, 0, bound}; }
  static Distribution normal(double deviation) { return {Kind::normal, 0, deviation}; }

  /// 32-bit numbers that one draw takes from the sequence.
  std::uint64_t words() const { return kind == Kind::uniform ? 2 : 4; }
  double draw(Random& random) const {
    return kind == Kind::uniform ? random.uniform(center - spread, center + spread)
                                 : center + spread * random.normal();
  }
};

/// Number i is draw i of the sequence, in any thread.
void fill(Array& array, const Distribution& distribution, const Random& sequence) {
  dispatch(array.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const numbers = array.mutable_data<T>();
    parallel_ranges(array.numel(), grain_for(10), [&](std::int64_t begin, std::int64_t end) {
      Random random = sequence;
      random.set_position(static_cast<std::uint64_t>(begin) * distribution.words());
      for (std::int64_t i = begin; i < end; ++i) numbers[i] = static_cast<T>(distribution.draw(random));
    });
  });
}

Tensor start(const Shape& shape, const Distribution& distribution, Redrawn redrawn) {
  if (drawn == Draw::nothing || (drawn == Draw::only_by_initialize && redrawn == Redrawn::yes))
    return Tensor::zeros(shape);
  static thread_local std::uint64_t made = 0;
  Array array(shape);
  fill(array, distribution, Random(/*seed=*/0, made++));
  return Tensor::constant(std::move(array));
}

/// Residual branches in the model: each ends in one marked Linear.
std::int64_t count_branches(Module& root) {
  std::int64_t branches = 0;
  for (const NamedModule& named : root.modules()) {
    const auto* linear = dynamic_cast<const Linear*>(named.module);
    if (linear != nullptr && linear->ends_branch()) ++branches;
  }
  return branches;
}

/// The distribution for the parameter `name` of a Linear; deviation 0 means zeros.
Distribution linear_distribution(const Linear& linear, const Parameter& parameter, Init scheme,
                                 std::int64_t branches) {
  if (scheme == Init::book) return Distribution::uniform(1 / std::sqrt(static_cast<double>(linear.in())));
  if (&parameter == linear.bias) return Distribution::normal(0);
  return Distribution::normal(linear.ends_branch() ? kGpt2Deviation / std::sqrt(static_cast<double>(branches))
                                                   : kGpt2Deviation);
}

}  // namespace

Tensor uniform_start(const Shape& shape, double low, double high, Redrawn redrawn) {
  return start(shape, {Distribution::Kind::uniform, (low + high) / 2, (high - low) / 2}, redrawn);
}

Tensor normal_start(const Shape& shape, double mean, double deviation, Redrawn redrawn) {
  return start(shape, {Distribution::Kind::normal, mean, deviation}, redrawn);
}

DrawGuard::DrawGuard(Draw draw) : before_(drawn) { drawn = std::max(drawn, draw); }
DrawGuard::~DrawGuard() { drawn = before_; }

void initialize(Module& root, Init scheme, std::uint64_t seed) {
  if (drawn == Draw::nothing) return;
  const std::int64_t branches = count_branches(root);
  for (const NamedParameter& named : root.named_parameters()) {
    const Random sequence(seed, scope_of(named.name).hash);
    if (const auto* linear = dynamic_cast<const Linear*>(named.owner))
      fill(named.parameter->mutable_array(), linear_distribution(*linear, *named.parameter, scheme, branches),
           sequence);
    else if (dynamic_cast<const Embedding*>(named.owner) != nullptr)
      fill(named.parameter->mutable_array(), Distribution::normal(scheme == Init::book ? 1 : kGpt2Deviation),
           sequence);
  }
}

}  // namespace handgrad::nn
