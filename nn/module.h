// Module: owns parameters and other modules under names, and knows its place in the model. Layer: a module
// that maps one tensor to another.
//
//     class MyNorm final : public nn::Layer {
//      public:
//       explicit MyNorm(std::int64_t width, double eps = 1e-5)
//           : gain(param("gain", {width}, nn::constant(1))), eps_(eps) {}
//       Tensor forward(const Tensor& x) override {
//         return gain * x / sqrt(mean(square(x), kLast, KeepDim::yes) + eps_);
//       }
//       Parameter& gain;  // [width]
//
//      private:
//       double eps_;
//     };
//
// That is all: the parameter is found by optimizers, checkpoints, inspect and the gradient check as
// "final_norm.gain", or wherever the module hangs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/core/parameter.h"
#include "handgrad/core/scope.h"

namespace handgrad::nn {

/// What the first numbers of a parameter are drawn from. Made by `uniform`, `normal` or `constant`.
struct Distribution {
  /// Its family.
  enum class Type { uniform, normal, constant };
  Type type;                 ///< what `size` means
  double size;               ///< the bound, the standard deviation, or the number itself
  bool ends_branch = false;  ///< of the last Linear of a residual branch, x + branch(x)
  bool is_default = false;   ///< `set_init` may replace it
};
/// From -bound to bound, each value as likely.
inline Distribution uniform(double bound) { return {Distribution::Type::uniform, bound}; }
/// Mean 0.
inline Distribution normal(double deviation) { return {Distribution::Type::normal, deviation}; }
/// Every number is this one.
inline Distribution constant(double value) { return {Distribution::Type::constant, value}; }
/// The same, for `set_init` to replace.
inline Distribution as_default(Distribution start) {
  start.is_default = true;
  return start;
}

class Module;

/// A parameter under its full name, "trf_blocks.0.norm1.scale", counted from the module that was asked.
struct NamedParameter {
  std::string name;      ///< from the module that was asked: "trf_blocks.0.norm1.scale"
  Parameter* parameter;  ///< lives as long as its owner
  const Module* owner;   ///< the module that declared it
};

/// A module under its path; the one that was asked has the empty path.
struct NamedModule {
  std::string path;  ///< from the module that was asked: "trf_blocks.0.norm1"
  Module* module;    ///< lives as long as its model
};

/// Tied parameters have several names.
enum class TiedNames { first, all };

/// What a norm of rows says about itself: output = scale * normalized + shift, where normalized is x / sqrt(mean(x * x) +
/// eps), or the same of x - mean.
struct NormFormula {
  bool centered = false;             ///< of x - mean, as in LayerNorm; otherwise of x, as in RMSNorm
  double eps = 0;                    ///< added under the root
  const Parameter* scale = nullptr;  ///< [width]; nullptr: ones
  const Parameter* shift = nullptr;  ///< [width]; nullptr: zeros
};

/// Looks at what a module returned; it must not change it.
using OutputObserver = std::function<void(const Tensor& output)>;

/// Sees every module call of the calling thread while a ModuleObserverGuard lives. It may look, not change.
class ModuleObserver {
 public:
  virtual ~ModuleObserver() = default;
  /// What a layer is given, before it runs. Not called for modules that take token ids.
  virtual void input(const Module& /*module*/, const Tensor& /*x*/) {}
  /// What a module returned. Inner modules come before the ones around them.
  virtual void output(const Module& /*module*/, const Tensor& /*y*/) {}
};

/// Sets the calling thread's observer for a block, and restores the one before.
class ModuleObserverGuard : ScopedValue<ModuleObserver*> {
 public:
  explicit ModuleObserverGuard(ModuleObserver& observer);  ///< must outlive the guard
};

/// Parameters and children have a fixed order, that of their declaration: a module's own parameters first,
/// then its children, each in turn. Modules are neither copied nor moved, so a reference to one stays good
/// while its model lives.
class Module {
 public:
  Module() = default;
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Full name of where the module hangs, "trf_blocks.3.norm1"; empty for a whole model.
  const std::string& path() const { return scope().path; }
  /// The same, as the engine keeps it.
  const Scope& scope() const { return scope_ != nullptr ? *scope_ : find_scope(); }
  /// What tables call it: the name under which a registry made it, else its class in lower case,
  /// "layer_norm".
  std::string type() const;
  void set_type(std::string type) { type_ = std::move(type); }  ///< registries call it

  /// All parameters of this module and of those below it, in order. A tied one is listed once, under its first
  /// name, unless all names are requested.
  std::vector<NamedParameter> named_parameters(TiedNames names = TiedNames::first) const;
  std::vector<Parameter*> parameters() const;  ///< the same without names
  /// This module and all below it, each before its children.
  std::vector<NamedModule> modules();
  /// nullptr when there is none of that name. A tied parameter is found under each of its names.
  Parameter* find_parameter(std::string_view name) const;
  /// What the first numbers of a parameter that it declared are drawn from; nullptr when they were given.
  Distribution* start(const Parameter& parameter) const;
  Module* find_module(std::string_view path);  ///< nullptr when there is none at that path
  /// How many numbers the parameters hold; tied ones count once.
  std::int64_t parameter_count() const;

  /// What views show of a norm, line by line: a norm of the form of NormFormula overrides it.
  virtual std::optional<NormFormula> norm() const { return std::nullopt; }
  /// Floating-point operations of this module alone, for one token of a forward pass over rows of `cols` tokens: by default
  /// a product and a sum for each number of its matrices. Modules that compute otherwise override it.
  virtual double flops_per_token(std::int64_t cols) const;

  /// Whether layers that behave differently while training, such as Dropout, do so.
  bool training() const { return training_; }
  void train(bool on = true);    ///< sets training() of this module and of all below it
  void eval() { train(false); }  ///< the other way round

  /// Converts all parameters; gradients collected so far are dropped.
  void to(DType dtype);
  /// Leaves every parameter without a gradient.
  void zero_grad();
  /// Freezes the parameters with a name that one of the patterns matches (see io/pattern.h), and returns the
  /// names. ValueError when a pattern matches nothing.
  std::vector<std::string> freeze(const std::vector<std::string>& patterns);

  /// `observer` sees each output of this module from now on.
  void on_output(OutputObserver observer);
  /// Whether this module's outputs have observers.
  bool observed() const { return observers_ != nullptr || thread_observer_ != nullptr; }
  /// Shows them an output. Calls do so themselves; this is for a module that computes what an inner one would
  /// return.
  void show_output(const Tensor& output) const;

 protected:
  /// Declares a parameter that starts as drawn from `start`: by itself at once, in a model by `draw`.
  /// ValueError when the name is empty, has a dot or is taken.
  Parameter& param(std::string name, const Shape& shape, const Distribution& start);
  /// The same for a parameter that starts as the numbers `start`.
  Parameter& param(std::string name, const Tensor& start);
  /// Declares another name for a parameter that a module of the same model has declared before: shared
  /// weights. It is listed, counted, saved and updated once, under its first name, and its gradient is the
  /// sum of all its uses.
  Parameter& tie(std::string name, Parameter& shared);

  /// Declares a child: `child<Linear>("out_proj", in, out)`.
  template <class T, class... Args>
  T& child(std::string name, Args&&... args) {
    return child(std::move(name), std::make_unique<T>(std::forward<Args>(args)...));
  }
  /// The same for a module that exists. ValueError when there is none, or as for `param`.
  template <class T>
  T& child(std::string name, std::unique_ptr<T> module) {
    T* const child = module.get();
    attach(std::move(name), std::move(module));
    return *child;
  }

  /// Runs `forward` in this module's scope, then notifies observers; every kind of module's `operator()` calls
  /// it. GraphError when another module is running and this one is not registered: its parameters would not
  /// be trained.
  template <class Forward>
  Tensor run(const Forward& forward) {
    if (running_ != nullptr && parent_ == nullptr) [[unlikely]]
      throw_stray();
    const ScopedValue<const Module*> running(running_, this);
    const ScopeGuard guard(scope());
    Tensor output = forward();
    if (observed()) [[unlikely]]
      show_output(output);
    return output;
  }
  void show_input(const Tensor& x) const;  ///< shows the calling thread's observer what a layer is given

 private:
  friend class ModuleObserverGuard;
  friend class EvalMode;

  struct Declared {
    std::string name;
    Parameter* parameter;
    std::unique_ptr<Parameter> owned;     // none for a tied one
    std::unique_ptr<Distribution> start;  // none when it is tied or its numbers were given
  };

  [[noreturn]] void throw_stray() const;
  void attach(std::string name, std::unique_ptr<Module> module);
  void check_name(const std::string& name) const;
  const Scope& find_scope() const;
  void forget_scope();
  template <class Function>
  void walk(const Function& function);
  template <class Function>
  void walk_named(const std::string& path, const Function& function) const;

  inline static constinit thread_local ModuleObserver* thread_observer_ = nullptr;
  inline static constinit thread_local const Module* running_ = nullptr;

  std::string name_, type_;
  Module* parent_ = nullptr;
  mutable const Scope* scope_ = nullptr;  // found when it is first asked for
  std::vector<Declared> parameters_;
  std::vector<std::unique_ptr<Module>> children_;
  std::unique_ptr<std::vector<OutputObserver>> observers_;
  bool training_ = true;
};

/// Several operations have two forms with equal numbers: fused, one operation with its derivative, and composed,
/// written from primitive operations as in the book, so that each intermediate result is visible.
enum class Form { fused, composed };

/// A module that maps one tensor to another. Call it as a function: `layer(x)`; that sets the module path,
/// which `forward` alone does not.
class Layer : public Module {
 public:
  /// Computes the output from operations, each of which brings its derivative. Call the layer itself, layer(x):
  /// that sets the module path and tells observers.
  virtual Tensor forward(const Tensor& x) = 0;
  /// The output of forward, under this module's path.
  Tensor operator()(const Tensor& x) {
    if (observed()) [[unlikely]]
      show_input(x);
    return run([&] { return forward(x); });
  }
};

/// Makes layers of a width that its caller knows: how a model receives its type of norm.
using LayerMaker = std::function<std::unique_ptr<Layer>(std::int64_t width)>;

/// Evaluation mode for a block, for a module and all below it; then each is as it was.
class EvalMode {
 public:
  /// Switches `module` and all below it to evaluation.
  explicit EvalMode(Module& module);
  ~EvalMode();
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  std::vector<Module*> were_training_;
};

}  // namespace handgrad::nn
