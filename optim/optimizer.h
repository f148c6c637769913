// Optimizer: moves parameters against their gradients.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/io/safetensors.h"
#include "handgrad/nn/module.h"

namespace handgrad::optim {

/// Parameters under their full names, as Module::named_parameters gives them; an optimizer needs no owner.
using Parameters = std::vector<nn::NamedParameter>;

/// What an optimizer keeps of every parameter at most: Adam's two moments.
inline constexpr int kMaxStates = 2;

/// What a state averages: the gradient, or its square. `inspect --of first_moment` reads the former.
enum class Moment { first, second };

/// An array that an optimizer keeps of each parameter.
struct OptimizerState {
  const char* name;  ///< in checkpoints, after the parameter's: "exp_avg"; a string literal
  Moment moment;     ///< how readers of a run ask for it
};

/// Base of SGD, Adam and AdamW. It keeps one state for each parameter: a parameter that appears under several
/// names (tied weights) has one state, one update, and the first of its names.
///
/// Parameters without a gradient are left alone: no update, no decay, moments and step count as they were. A
/// gradient of zeros is a gradient: decay and momentum still move the parameter. Frozen parameters are left
/// alone too. Gradients are read and never written.
class Optimizer {
 public:
  /// What its row in the registry tells the readers of a run.
  struct Traits {
    std::string label = {};                   ///< in sentences: "AdamW"
    std::vector<OptimizerState> states = {};  ///< all that it may keep
    bool first_step_is_lr = false;            ///< the first update has the size of lr, whatever the gradient
  };

  /// The parameters must outlive the optimizer and keep their shapes and types. `states`: the
  /// arrays that are kept of each, at most kMaxStates; zeros at first.
  Optimizer(Parameters parameters, std::vector<OptimizerState> states);
  virtual ~Optimizer() = default;
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
  /// How hard decay pulls at the parameters that decay(); 0: not at all.
  virtual double weight_decay() const = 0;

  /// In the order given, each parameter once.
  const Parameters& parameters() const { return parameters_; }
  /// Updates that parameter number `i` has had: those steps in which it had a gradient.
  std::int64_t updates(std::size_t i) const { return states_[i].updates; }

  /// Names of trainable parameters that a step left alone because they had no gradient. Each is given once in
  /// the life of the optimizer; the call empties the list.
  std::vector<std::string> take_skipped();

  /// What a checkpoint must hold, in order: for each parameter that was updated the count of its updates,
  /// NAME.step (int32, [1]), and the optimizer's arrays of the parameter's shape, such as NAME.exp_avg. Their
  /// numbers are shared with the optimizer, not copied.
  std::vector<io::NamedArray> state() const;
  /// Takes over what `state()` gave, and forgets what there was; the numbers are copied. Error, before
  /// anything is changed, that lists every array that is missing, not known, or of another shape or type;
  /// `source` (a file) names where they came from.
  void load_state(const std::vector<io::NamedArray>& state, const std::string& source = "optimizer");

 protected:
  /// One parameter in one step, as any thread may see it: raw pointers.
  struct Job {
    void* value;              ///< the numbers to move
    const void* gradient;     ///< nullptr: left alone in this step
    void* state[kMaxStates];  ///< as many as there are state names
    std::int64_t update;      ///< number of this update of this parameter, from 1
    /// @{ As given to step().
    double lr, grad_scale;
    /// @}
    double correction[kMaxStates];  ///< for `prepare` to fill: of each state's bias
    DType dtype;                    ///< of all the arrays
    bool decay;                     ///< Parameter::decay()
  };

  /// Called for each parameter with a gradient, on the caller's thread.
  virtual void prepare(Job& /*job*/) {}
  /// The update of elements begin .. end - 1 of one parameter, on any thread.
  virtual void update(const Job& job, std::int64_t begin, std::int64_t end) const = 0;

 private:
  struct State {
    std::int64_t updates = 0;
    Array arrays[kMaxStates];  // undefined before the first update
    bool skipped = false;      // was reported as such
  };
  struct Slice {
    std::size_t parameter;
    std::int64_t begin, end;
  };

  void cut_into_slices();
  Job job_for(std::size_t i, double lr, double grad_scale);

  Parameters parameters_;
  std::vector<OptimizerState> kept_;
  std::vector<State> states_;
  std::vector<std::string> skipped_;
  std::vector<Job> jobs_;            // of the step at work
  std::vector<Slice> slices_;        // large parameters are cut
  std::vector<std::size_t> groups_;  // small ones are done together: first slice of each group, and the end
};

/// ValueError that names `owner` and `key` unless 0 <= value and value is finite.
void require_at_least_0(const char* owner, const char* key, double value);
/// ValueError unless 0 <= value < 1.
void require_below_1(const char* owner, const char* key, double value);

}  // namespace handgrad::optim
