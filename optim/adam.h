// Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019).
#pragma once

#include <array>

#include "handgrad/optim/optimizer.h"

namespace handgrad::optim {

/// PyTorch's names, and Adam's defaults there.
struct AdamOptions {
  double lr = 1e-3;                            ///< the learning rate that a schedule starts from
  std::array<double, 2> betas = {0.9, 0.999};  ///< how much of both averages is kept: beta1, beta2
  double eps = 1e-8;                           ///< added to the root, after the correction
  double weight_decay = 0;                     ///< for parameters that decay(); see Decay
};

/// How weight decay enters: `coupled` adds weight_decay * value to the gradient (L2, in Adam), `decoupled`
/// takes lr * weight_decay * value off the value itself (in AdamW).
enum class Decay { coupled, decoupled };

/// PyTorch's form. In the t-th update of a parameter, with gradient g:
///
///     exp_avg    = beta1 * exp_avg + (1 - beta1) * g
///     exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * g^2
///     value      = value - lr * m / (sqrt(v) + eps)
///
/// where m = exp_avg / (1 - beta1^t) and v = exp_avg_sq / (1 - beta2^t).
///
/// eps is added outside the root, after the correction. Updates are counted separately for each parameter.
/// State: NAME.exp_avg, NAME.exp_avg_sq.
class Adam final : public Optimizer {
 public:
  /// What it remembers of each parameter: the means of its gradient and of its square.
  static constexpr OptimizerState kStates[] = {{"exp_avg", Moment::first}, {"exp_avg_sq", Moment::second}};

  /// ValueError for a negative or infinite number, and for betas of 1 or more.
  Adam(Parameters parameters, const AdamOptions& options, Decay decay);

  std::string_view type() const override { return decay_ == Decay::coupled ? "adam" : "adamw"; }
  double lr() const override { return options_.lr; }
  double weight_decay() const override { return options_.weight_decay; }
  const AdamOptions& options() const { return options_; }  ///< as they were given

 private:
  void prepare(Job& job) override;
  void update(const Job& job, std::int64_t begin, std::int64_t end) const override;

  AdamOptions options_;
  Decay decay_;
  std::int64_t corrected_update_ = 0;  // for which `corrections_` were computed: most parameters share it
  std::array<double, 2> corrections_{};
};

}  // namespace handgrad::optim
