#include "handgrad/optim/sgd.h"

#include <fmt/format.h>

#include "handgrad/core/error.h"
#include "handgrad/core/kernels/update_rows.h"
#include "handgrad/optim/optimizer.h"

namespace handgrad::optim {
namespace {

const SgdOptions& checked(const SgdOptions& options) {
  require_at_least_0("sgd", "lr", options.lr);
  require_below_1("sgd", "momentum", options.momentum);
  require_below_1("sgd", "dampening", options.dampening);
  require_at_least_0("sgd", "weight_decay", options.weight_decay);
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    throw ValueError("sgd", "nesterov needs momentum above 0 and dampening 0",
                     {{"momentum", fmt::format("{}", options.momentum)},
                      {"dampening", fmt::format("{}", options.dampening)}});
  }
  return options;
}

template <class T>
void update_rows(const SgdOptions& options, void* value, void* momentum, const void* gradient, bool decay,
                 bool first, double lr, double grad_scale, std::int64_t begin, std::int64_t end) {
  const kernels::SgdFactors<T> factors{
      .lr = static_cast<T>(lr),
      .gradient_scale = static_cast<T>(grad_scale),
      .l2 = static_cast<T>(decay ? options.weight_decay : 0),
      .momentum_factor = static_cast<T>(options.momentum),
      .gradient_factor = static_cast<T>(1 - options.dampening),
      .nesterov = options.nesterov,
      .first = first,
  };
  T* velocity = momentum != nullptr ? static_cast<T*>(momentum) + begin : nullptr;
  HANDGRAD_ACTIVE(sgd<T>)
  (static_cast<T*>(value) + begin, velocity, static_cast<const T*>(gradient) + begin, end - begin, factors);
}

}  // namespace

Sgd::Sgd(Parameters parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters), checked(options).momentum == 0
                                           ? std::vector<OptimizerState>{}
                                           : std::vector<OptimizerState>{kMomentum}),
      options_(options) {}

void Sgd::update(const Job& job, std::int64_t begin, std::int64_t end) const {
  dispatch(job.dtype, [&](auto zero) {
    update_rows<decltype(zero)>(options_, job.value, job.state[0], job.gradient, job.decay, job.update == 1,
                                job.lr, job.grad_scale, begin, end);
  });
}

}  // namespace handgrad::optim
