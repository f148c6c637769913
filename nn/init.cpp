#include "handgrad/nn/init.h"

#include <cmath>
#include <utility>

#include "handgrad/core/parallel.h"
#include "handgrad/core/random.h"
#include "handgrad/nn/module.h"

namespace handgrad::nn {
namespace {

constexpr double kGpt2Deviation = 0.02;

thread_local bool later = false;

/// Number i is draw i of the sequence, for any number of threads.
template <class Number>
void fill(Array& array, const Random& sequence, std::uint64_t words, const Number& number) {
  dispatch(array.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const numbers = array.mutable_data<T>();
    parallel_ranges(array.numel(), grain_for(10), [&](std::int64_t begin, std::int64_t end) {
      Random random = sequence;
      random.set_position(static_cast<std::uint64_t>(begin) * words);  // 32-bit words that one number takes
      for (std::int64_t i = begin; i < end; ++i) numbers[i] = static_cast<T>(number(random));
    });
  });
}

void fill(Array& array, const Distribution& start, const Random& sequence) {
  const double size = start.size;
  if (start.type == Distribution::Type::constant)
    array.fill(size);
  else if (start.type == Distribution::Type::uniform)
    fill(array, sequence, 2, [size](Random& random) { return random.uniform(-size, size); });
  else
    fill(array, sequence, 4, [size](Random& random) { return size * random.normal(); });
}

}  // namespace

Parameter& Module::param(std::string name, const Shape& shape, const Distribution& start) {
  static thread_local std::uint64_t drawn = 0;
  Array numbers(shape);
  const bool random = start.type != Distribution::Type::constant;
  if (later && random)
    numbers.fill(0);
  else
    fill(numbers, start, Random(/*seed=*/0, random ? drawn++ : 0));
  Parameter& parameter = param(std::move(name), Tensor::constant(std::move(numbers)));
  parameters_.back().start = std::make_unique<Distribution>(start);
  return parameter;
}

void set_init(Module& root, Init init) {
  if (init == Init::book) return;
  std::int64_t branches = 0;
  for (const auto& [name, parameter, owner] : root.named_parameters())
    if (const Distribution* start = owner->start(*parameter); start && start->ends_branch) ++branches;
  for (const auto& [name, parameter, owner] : root.named_parameters()) {
    Distribution* const start = owner->start(*parameter);
    if (start == nullptr || !start->is_default) continue;
    const double shrink = start->ends_branch ? std::sqrt(static_cast<double>(branches)) : 1;
    const bool matrix = parameter->rank() >= 2;
    start->type = matrix ? Distribution::Type::normal : Distribution::Type::constant;
    start->size = matrix ? kGpt2Deviation / shrink : 0;
  }
}

void draw(Module& root, std::uint64_t seed) {
  if (later) return;
  for (const auto& [name, parameter, owner] : root.named_parameters())
    if (const Distribution* start = owner->start(*parameter))
      fill(parameter->mutable_array(), *start, Random(seed, scope_of(name).hash));
}

DrawLater::DrawLater() : ScopedValue(later, true) {}

}  // namespace handgrad::nn
