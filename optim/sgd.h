// SGD: stochastic gradient descent, with momentum if wanted.
#pragma once

#include "handgrad/optim/optimizer.h"

namespace handgrad::optim {

/// PyTorch's names.
struct SgdOptions {
  double lr = 1e-2;         ///< the learning rate that a schedule starts from
  double momentum = 0;      ///< part of the last velocity that is kept
  double dampening = 0;     ///< part of the gradient that does not enter the velocity
  bool nesterov = false;    ///< step as if the velocity were already one gradient further
  double weight_decay = 0;  ///< added to the gradient, times the value
};

/// PyTorch's rule. With g = gradient + weight_decay * value (the second term where the parameter decays):
///
///     velocity = g                                               at the parameter's first update
///     velocity = momentum * velocity + (1 - dampening) * g       after it
///     value    = value - lr * velocity            or, Nesterov,  value - lr * (g + momentum * velocity)
///
/// and without momentum value - lr * g. The learning rate is not part of the velocity, so a new rate takes
/// effect at once. State: NAME.momentum, if there is momentum.
class Sgd final : public Optimizer {
 public:
  /// What it remembers of each parameter, with momentum.
  static constexpr OptimizerState kMomentum = {"momentum", Moment::first};

  /// ValueError for a negative or infinite number, momentum or dampening of 1 or more, and Nesterov without
  /// momentum or with dampening.
  Sgd(Parameters parameters, const SgdOptions& options);

  std::string_view type() const override { return "sgd"; }
  double lr() const override { return options_.lr; }
  double weight_decay() const override { return options_.weight_decay; }
  const SgdOptions& options() const { return options_; }  ///< as they were given

 private:
  void update(const Job& job, std::int64_t begin, std::int64_t end) const override;

  SgdOptions options_;
};

}  // namespace handgrad::optim
