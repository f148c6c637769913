#include "handgrad/optim/adam.h"

#include <cmath>
#include <iterator>

#include "handgrad/core/kernels/update_rows.h"
#include "handgrad/optim/optimizer.h"

namespace handgrad::optim {
namespace {

const AdamOptions& checked(const AdamOptions& options, const char* type) {
  require_at_least_0(type, "lr", options.lr);
  for (const double beta : options.betas) require_below_1(type, "betas", beta);
  require_at_least_0(type, "eps", options.eps);
  require_at_least_0(type, "weight_decay", options.weight_decay);
  return options;
}

// By squaring: std::pow may give other bits on another platform.
double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return result;
}

}  // namespace

Adam::Adam(Parameters parameters, const AdamOptions& options, Decay decay)
    : Optimizer(std::move(parameters), {std::begin(kStates), std::end(kStates)}),
      options_(checked(options, decay == Decay::coupled ? "adam" : "adamw")),
      decay_(decay) {}

void Adam::prepare(Job& job) {
  if (job.update != corrected_update_) {
    corrected_update_ = job.update;
    corrections_[0] = 1 - power(options_.betas[0], job.update);
    corrections_[1] = std::sqrt(1 - power(options_.betas[1], job.update));
  }
  job.correction[0] = corrections_[0];
  job.correction[1] = corrections_[1];
}

void Adam::update(const Job& job, std::int64_t begin, std::int64_t end) const {
  dispatch(job.dtype, [&](auto zero) {
    using T = decltype(zero);
    const double weight_decay = job.decay ? options_.weight_decay : 0;
    const kernels::AdamFactors<T> factors{
        .gradient_scale = static_cast<T>(job.grad_scale),
        .l2 = static_cast<T>(decay_ == Decay::coupled ? weight_decay : 0),
        .keep = static_cast<T>(decay_ == Decay::decoupled ? 1 - job.lr * weight_decay : 1),
        .one_minus_beta1 = static_cast<T>(1 - options_.betas[0]),
        .beta2 = static_cast<T>(options_.betas[1]),
        .one_minus_beta2 = static_cast<T>(1 - options_.betas[1]),
        .step_size = static_cast<T>(job.lr / job.correction[0]),
        .root_correction = static_cast<T>(1 / job.correction[1]),
        .eps = static_cast<T>(options_.eps),
    };
    HANDGRAD_ACTIVE(adam<T>)
    (static_cast<T*>(job.value) + begin, static_cast<T*>(job.state[0]) + begin,
     static_cast<T*>(job.state[1]) + begin, static_cast<const T*>(job.gradient) + begin, end - begin,
     factors);
  });
}

}  // namespace handgrad::optim
