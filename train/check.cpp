#include "handgrad/train/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "handgrad/core/error.h"
#include "handgrad/core/random.h"
#include "handgrad/io/near_match.h"
#include "handgrad/nn/registry.h"

namespace handgrad::train {
namespace {

constexpr std::uint64_t kStream = 0x636865636bULL;  // "check"
constexpr std::int64_t kMostRows = 2, kMostTokens = 8;

/// Numbers far from all being one or zero.
void move_vectors(const optim::Parameters& parameters) {
  Random random(2266, kStream);
  for (const nn::NamedParameter& named : parameters) {
    if (named.parameter->rank() != 1) continue;
    double* numbers = named.parameter->mutable_array().mutable_data<double>();
    for (std::int64_t i = 0; i < named.parameter->numel(); ++i) numbers[i] += random.uniform(-0.5, 0.5);
  }
}

/// The first tokens of the first rows of the run's first batch.
Ids some_ids(const Run& run) {
  data::Batch batch;
  run.data().training->fill(batch, {});
  const std::int64_t rows = std::min(batch.rows, kMostRows), cols = std::min(batch.cols, kMostTokens);
  std::vector<std::int32_t> ids;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t t = 0; t < cols; ++t)
      ids.push_back(batch.inputs[static_cast<std::size_t>(row * batch.cols + t)]);
  return Ids(ids, Shape({rows, cols}));
}

std::unique_ptr<nn::Layer> make_layer(const std::string& type, io::Fields& fields, std::int64_t width) {
  std::vector<std::string> known;
  for (const auto* registry : {&nn::norms(), &nn::feed_forwards()})
    for (const auto& row : registry->rows()) {
      if (row.type == type) return row.factory(fields, width);
      known.push_back(row.type);
    }
  throw ValueError("check",
                   fmt::format("`layer`: unknown layer \"{}\"{}", type, io::did_you_mean(type, known)));
}

}  // namespace

GradCheckReport check_model(const Run& run, const GradCheckOptions& options, bool keep_values) {
  const optim::Parameters parameters = run.model().named_parameters();
  std::vector<Array> before;
  for (const nn::NamedParameter& named : parameters) before.push_back(named.parameter->array().copy());
  if (!keep_values) move_vectors(parameters);
  const Ids ids = some_ids(run);
  GradCheckReport report = check_parameters([&] { return run.model()(ids); }, parameters, options);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parameters[i].parameter->mutable_array().assign(before[i]);
  return report;
}

GradCheckReport check_layer(nn::Layer& layer, std::int64_t width, const GradCheckOptions& options) {
  const optim::Parameters parameters = layer.named_parameters();
  move_vectors(parameters);
  Random random(2266, kStream + 1);
  Tensor x = Tensor::zeros({2, 3, width}, DType::float64);
  for (std::int64_t i = 0; i < x.numel(); ++i)
    x.mutable_array().mutable_data<double>()[i] = random.uniform(-2, 2);
  // The input is in the list of parameters, so that one table and one tolerance apply to all.
  Parameter input("input", x);
  std::vector<CheckedParameter> checked{{"input", &input}};
  for (const nn::NamedParameter& named : parameters) checked.push_back({named.name, named.parameter});
  return check_parameters([&] { return layer(input); }, checked, options);
}

GradCheckReport check_layer(const std::string& type, io::Fields fields, std::int64_t width,
                            const GradCheckOptions& options) {
  const std::unique_ptr<nn::Layer> layer = make_layer(type, fields, width);
  fields.finish();
  layer->to(DType::float64);
  return check_layer(*layer, width, options);
}

}  // namespace handgrad::train
