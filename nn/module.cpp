#include "handgrad/nn/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <typeinfo>
#include <unordered_set>

#include "handgrad/core/error.h"
#include "handgrad/io/pattern.h"

namespace handgrad::nn {
namespace {

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

/// "handgrad::nn::LayerNorm" -> "layer_norm", "RMSNorm" -> "rms_norm"
std::string snake_case(std::string_view class_name) {
  const auto upper = [&](std::size_t i) {
    return std::isupper(static_cast<unsigned char>(class_name[i])) != 0;
  };
  std::string out;
  for (std::size_t i = 0; i < class_name.size(); ++i) {
    const bool word_ends = i + 1 < class_name.size() && !upper(i + 1);
    if (i > 0 && upper(i) && (!upper(i - 1) || word_ends) && class_name[i - 1] != '_') out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(class_name[i])));
  }
  return out;
}

std::string class_name_of(const Module& module) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(module).name(), nullptr, nullptr, nullptr), &std::free);
  std::string full = name ? name.get() : typeid(module).name();
  full.resize(std::min(full.size(), full.find('<')));
  const auto colon = full.rfind(':');
  return colon == std::string::npos ? full : full.substr(colon + 1);
}

}  // namespace

ModuleObserverGuard::ModuleObserverGuard(ModuleObserver& observer)
    : ScopedValue(Module::thread_observer_, &observer) {}

Module::~Module() = default;

std::string Module::type() const { return type_.empty() ? snake_case(class_name_of(*this)) : type_; }

// ---- Declaring

void Module::check_name(const std::string& name) const {
  const auto throw_error = [&](const std::string& rule) {
    throw ValueError("module", "the name of a parameter or child of " + type() + " must " + rule +
                                   ", got \"" + name + "\"");
  };
  if (name.empty() || name.find('.') != std::string::npos) throw_error("have a letter and no dot");
  for (const Declared& entry : parameters_)
    if (entry.name == name) throw_error("be new in its module");
  for (const auto& child : children_)
    if (child->name_ == name) throw_error("be new in its module");
}

Parameter& Module::param(std::string name, const Tensor& start) {
  check_name(name);
  auto owned = std::make_unique<Parameter>(name, start);
  Parameter& parameter = *owned;
  parameters_.push_back({std::move(name), &parameter, std::move(owned), nullptr});
  return parameter;
}

Parameter& Module::tie(std::string name, Parameter& shared) {
  check_name(name);
  parameters_.push_back({std::move(name), &shared, nullptr, nullptr});
  return shared;
}

void Module::attach(std::string name, std::unique_ptr<Module> module) {
  check_name(name);
  if (!module)
    throw ValueError("module", "child \"" + name + "\" of " + type() + " must be a module, got nullptr");
  module->name_ = std::move(name);
  module->parent_ = this;
  module->forget_scope();
  children_.push_back(std::move(module));
}

const Scope& Module::find_scope() const {
  scope_ = parent_ == nullptr ? &scope_of("") : &scope_of(joined(parent_->path(), name_));
  return *scope_;
}

void Module::forget_scope() {
  scope_ = nullptr;
  for (const auto& child : children_) child->forget_scope();
}

// ---- Walking

template <class Function>
void Module::walk(const Function& function) {
  function(*this);
  for (const auto& child : children_) child->walk(function);
}

template <class Function>
void Module::walk_named(const std::string& path, const Function& function) const {
  function(path, *this);
  for (const auto& child : children_) child->walk_named(joined(path, child->name_), function);
}

std::vector<NamedParameter> Module::named_parameters(TiedNames names) const {
  std::vector<NamedParameter> found;
  std::unordered_set<const Parameter*> seen;
  walk_named("", [&](const std::string& path, const Module& module) {
    for (const Declared& entry : module.parameters_)
      if (seen.insert(entry.parameter).second || names == TiedNames::all)
        found.push_back({joined(path, entry.name), entry.parameter, &module});
  });
  return found;
}

std::vector<Parameter*> Module::parameters() const {
  std::vector<Parameter*> found;
  for (const NamedParameter& named : named_parameters()) found.push_back(named.parameter);
  return found;
}

std::vector<NamedModule> Module::modules() {
  std::vector<NamedModule> found;
  walk_named("", [&](const std::string& path, const Module& module) {
    found.push_back({path, const_cast<Module*>(&module)});  // this function is not const, so neither are they
  });
  return found;
}

Parameter* Module::find_parameter(std::string_view name) const {
  for (const NamedParameter& named : named_parameters(TiedNames::all))
    if (named.name == name) return named.parameter;
  return nullptr;
}

Distribution* Module::start(const Parameter& parameter) const {
  for (const Declared& entry : parameters_)
    if (entry.parameter == &parameter) return entry.start.get();
  return nullptr;
}

Module* Module::find_module(std::string_view path) {
  for (const NamedModule& named : modules())
    if (named.path == path) return named.module;
  return nullptr;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter* parameter : parameters()) count += parameter->numel();
  return count;
}

double Module::flops_per_token(std::int64_t /*cols*/) const {
  double flops = 0;
  for (const Declared& entry : parameters_)
    if (entry.parameter->rank() >= 2) flops += 2 * static_cast<double>(entry.parameter->numel());
  return flops;
}

// ---- Changing all of it

void Module::train(bool on) {
  walk([on](Module& module) { module.training_ = on; });
}

void Module::to(DType dtype) {
  for (Parameter* parameter : parameters()) parameter->to(dtype);
}

void Module::zero_grad() {
  walk([](Module& module) {
    for (const Declared& entry : module.parameters_) entry.parameter->zero_grad();
  });
}

std::vector<std::string> Module::freeze(const std::vector<std::string>& patterns) {
  const auto all = named_parameters(TiedNames::all);
  for (const std::string& pattern : patterns) {
    const bool used =
        std::any_of(all.begin(), all.end(), [&](const auto& p) { return io::matches(pattern, p.name); });
    if (!used)
      throw ValueError("freeze", "each pattern must match a parameter, got \"" + pattern + "\"", {},
                       "a name, a part of one (scale, norm1), or a pattern (*.norm1.*)");
  }
  for (const NamedParameter& named : all)
    for (const std::string& pattern : patterns)
      if (io::matches(pattern, named.name)) named.parameter->freeze();
  std::vector<std::string> frozen;
  for (const NamedParameter& named : named_parameters())
    if (named.parameter->frozen()) frozen.push_back(named.name);
  return frozen;
}

// ---- Running and observing

void Module::throw_stray() const {
  throw GraphError(
      type(),
      "a module that another one calls must be declared with child(), or its parameters are not trained", {},
      "child<Linear>(\"name\", in, out) instead of a member, a pointer or a vector");
}

void Module::on_output(OutputObserver observer) {
  if (!observers_) observers_ = std::make_unique<std::vector<OutputObserver>>();
  observers_->push_back(std::move(observer));
}

void Module::show_input(const Tensor& x) const {
  if (thread_observer_ != nullptr) thread_observer_->input(*this, x);
}

void Module::show_output(const Tensor& output) const {
  if (thread_observer_ != nullptr) thread_observer_->output(*this, output);
  if (observers_)
    for (const OutputObserver& observer : *observers_) observer(output);
}

EvalMode::EvalMode(Module& module) {
  module.walk([this](Module& inner) {
    if (std::exchange(inner.training_, false)) were_training_.push_back(&inner);
  });
}

EvalMode::~EvalMode() {
  for (Module* module : were_training_) module->training_ = true;
}

}  // namespace handgrad::nn
