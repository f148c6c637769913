#include "handgrad/nn/activation.h"

#include <fmt/format.h>

#include "handgrad/core/error.h"
#include "handgrad/io/near_match.h"

namespace handgrad::nn {
namespace {

template <class T>
std::unique_ptr<Layer> make() {
  return std::make_unique<T>();
}

struct NamedActivation {
  const char* name;
  std::unique_ptr<Layer> (*make)();
};

constexpr NamedActivation kActivations[] = {
    {"gelu", make<Gelu>},
    {"gelu_exact",
     []() -> std::unique_ptr<Layer> { return std::make_unique<Gelu>(handgrad::GeluForm::exact); }},
    {"relu", make<Relu>},
    {"sigmoid", make<Sigmoid>},
    {"silu", make<Silu>},
    {"tanh", make<Tanh>},
};

}  // namespace

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const NamedActivation& row : kActivations) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<Layer> make_activation(std::string_view name) {
  for (const NamedActivation& row : kActivations)
    if (row.name == name) return row.make();
  throw ValueError("activation", "unknown activation \"" + std::string(name) + "\"" +
                                     io::did_you_mean(name, activation_names()));
}

double Dropout::checked_rate(const char* what, double rate) {
  if (!(rate >= 0 && rate < 1))
    throw ValueError(what, fmt::format("drop_rate must be at least 0 and less than 1, got {}", rate));
  return rate;
}

}  // namespace handgrad::nn
