// Optimizer: moves parameters against their gradients.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/core/parameter.h"
#include "handgrad/nn/safetensors.h"

namespace handgrad::train {

/// A parameter under its full name, "trf_blocks.0.norm1.scale".
struct NamedParameter {
  std::string name;
  Parameter* parameter;
};
using Parameters = std::vector<NamedParameter>;

/// Base of SGD, Adam and AdamW. It keeps one state for each parameter: a parameter that appears under several
/// names (tied weights) has one state, one update, and the first of its names.
///
/// Parameters without a gradient are left alone: no update, no decay, moments and step count as they were. A
/// gradient of zeros is a gradient: decay and momentum still move the parameter. Frozen parameters are left
/// alone too. Gradients are read and never written.
class Optimizer {
 public:
  /// The parameters must outlive the optimiser and keep their shapes and types.
  explicit Optimizer(Parameters parameters);
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update of every parameter, as if its gradient were `grad_scale` times what it is (the factor that
  /// clipping gives; 1: as it is). The same bits for any number of threads, and no allocation after the first
  /// time.
  void step(double lr, double grad_scale = 1);

  /// The name under which configs and checkpoints know it: "sgd", "adam", "adamw".
  virtual std::string_view type() const = 0;
  /// The learning rate of its config, which a schedule starts from.
  virtual double lr() const = 0;
  /// By how much decay pulls at matrices; 0: not at all. Parameters that do not decay() are never pulled at.
  virtual double weight_decay() const = 0;

  /// In the order given, each parameter once.
  const Parameters& parameters() const { return parameters_; }
  /// Updates that the parameter number `i` has had: those steps in which it had a gradient.
  std::int64_t updates(std::size_t i) const { return updates_[i]; }

  /// Names of trainable parameters that a step left alone because they had no gradient. Each is given once in
  /// the life of the optimiser; the call empties the list.
  std::vector<std::string> take_skipped();

  /// What a checkpoint must hold, in order: for each parameter that was updated its count of updates,
  /// NAME.step (int32, [1]), and the optimiser's arrays of the parameter's shape, such as NAME.exp_avg. The
  /// numbers are shared with the optimiser, not copied.
  std::vector<nn::NamedArray> state() const;
  /// Takes over what `state()` gave, and forgets what there was; the numbers are copied. Error, before
  /// anything is changed, that lists every array that is missing, not known, or of another shape or type.
  void load_state(const std::vector<nn::NamedArray>& state);

 protected:
  /// One stretch of one parameter: all pointers are to its numbers begin .. end - 1.
  struct Slice {
    std::size_t parameter;
    std::int64_t begin, end;
  };

  /// Names of the arrays that are kept for each parameter, such as exp_avg; zeros at first.
  virtual std::vector<std::string_view> state_names() const = 0;
  /// Called once in a step, before the slices: factors that are the same for all parameters.
  virtual void prepare(double lr, double grad_scale) = 0;
  /// Updates the numbers of one slice. Runs on any thread, so it takes raw pointers only.
  virtual void update(const Slice& slice, std::int64_t updates, void* value, const void* gradient,
                      void* const* state, DType dtype, bool decay) const = 0;

 private:
  Parameters parameters_;
  std::vector<std::int64_t> updates_;
};

}  // namespace handgrad::train
