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

}  // namespace

Sgd::Sgd(Parameters parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters), checked(options).momentum == 0
                                           ? std::vector<OptimizerState>{}
                                           : std::vector<OptimizerState>{kMomentum}),
      options_(options) {}

void Sgd::update(const Job& job, std::int64_t begin, std::int64_t end) const {
  dispatch(job.dtype, [&](auto zero) {
    using T = decltype(zero);
    const kernels::SgdFactors<T> factors{
        .lr = static_cast<T>(job.lr),
        .gradient_scale = static_cast<T>(job.grad_scale),
        .l2 = static_cast<T>(job.decay ? options_.weight_decay : 0),
        .momentum_factor = static_cast<T>(options_.momentum),
        .gradient_factor = static_cast<T>(1 - options_.dampening),
        .nesterov = options_.nesterov,
        .first = job.update == 1,
    };
    T* velocity = job.state[0] != nullptr ? static_cast<T*>(job.state[0]) + begin : nullptr;
    HANDGRAD_ACTIVE(sgd<T>)
    (static_cast<T*>(job.value) + begin, velocity, static_cast<const T*>(job.gradient) + begin, end - begin,
     factors);
  });
}

}  // namespace handgrad::optim
