#include "handgrad/view/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "handgrad/core/autograd.h"
#include "handgrad/core/parallel.h"
#include "handgrad/view/recorded.h"
#include "handgrad/view/text.h"

namespace handgrad::view {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostTokens = 64, kRowsForEps = 8;

/// A centered norm's first call, row after row.
struct NormRows {
  std::string owner;
  double eps = 0;
  Array before, output;
};

std::vector<NormRows> norm_rows(const train::Run& run, const std::vector<std::int32_t>& ids,
                                const Shape& shape) {
  const FlushSubnormals flush;
  const NoGrad no_grad;
  const nn::EvalMode eval_mode(run.model());
  RecordedModules modules([](const nn::Module& module) {
    const auto norm = module.norm();
    return norm && norm->centered;
  });
  {
    const nn::ModuleObserverGuard guard(modules);
    run.model()(Ids(ids, shape));
  }
  std::vector<NormRows> norms;
  for (const RecordedCall& call : modules.calls()) {
    const std::string& owner = call.module->path();
    if (std::any_of(norms.begin(), norms.end(), [&](auto& norm) { return norm.owner == owner; })) continue;
    norms.push_back({owner, call.module->norm()->eps, call.x, call.y});
  }
  return norms;
}

/// Rows of a validation batch are consecutive in the text, those of a training batch are not.
data::Batch first_batch(const train::Run& run) {
  data::Batch batch;
  if (run.data().validation) {
    run.data().validation->fill(batch, 0);
  } else {
    run.data().training->fill(batch, {});
    batch.rows = std::min<std::int64_t>(batch.rows, 1);
  }
  batch.inputs.resize(static_cast<std::size_t>(batch.tokens()));
  return batch;
}

/// The first whole line, at most as long as the model's context.
std::vector<std::int32_t> line_of(const train::Run& run, const std::vector<std::int32_t>& ids) {
  const auto most =
      static_cast<std::ptrdiff_t>(std::min({run.model().context_length(), run.plan().cols, kMostTokens}));
  auto begin = ids.begin(), end = ids.end();
  if (const data::Tokenizer* tokenizer = run.source().tokenizer(); tokenizer != nullptr) {
    const auto ends_line = [&](std::int32_t id) { return tokenizer->token(id).ends_with('\n'); };
    const auto line = std::find_if(begin, end, ends_line);
    if (end - line > 2) begin = line + 1;
    const auto next = std::find_if(begin, end, ends_line);
    if (next - begin > 1) end = next;
  }
  return {begin, begin + std::min(most, end - begin)};
}

Json norm_json(const NormRows& norm, DType dtype, std::int64_t keep) {
  const std::int64_t rows = norm.before.shape().without_last().numel(), n = norm.before.shape().last();
  const std::int64_t first = rows - std::min(rows, keep);
  const LayerNormLines before = layer_norm_lines(norm.before, norm.eps),
                       middle = layer_norm_lines(before.normalized, norm.eps),
                       after = layer_norm_lines(norm.output, norm.eps);
  std::vector<double> statistics;
  for (std::int64_t row = 0; row < rows; ++row)
    for (const LayerNormLines* lines : {&before, &middle, &after})
      for (const Array* numbers : {&lines->mean, &lines->variance})
        statistics.push_back(numbers->data<double>()[row]);
  const auto kept = [&](const Array& array) {
    const std::vector<double> numbers = array.values();
    return base64({numbers.begin() + first * n, numbers.end()}, dtype);
  };
  return {{"owner", norm.owner},
          {"eps", norm.eps},
          {"size", n},
          {"first", first},
          {"statistics", base64(statistics, DType::float64)},
          {"before", kept(norm.before)},
          {"normalized", kept(before.normalized)},
          {"output", kept(norm.output)}};
}

/// Adds how many rows of a batch were counted, and how many have a variance below eps.
void add_below_eps(const train::Run& run, const data::Batch& batch, Json& norms) {
  const std::int64_t rows = std::min(batch.rows, kRowsForEps), cols = std::min(batch.cols, kMostTokens);
  std::vector<std::int32_t> ids;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = batch.inputs.begin() + row * batch.cols;
    ids.insert(ids.end(), begin, begin + cols);
  }
  for (const NormRows& norm : norm_rows(run, ids, {rows, cols})) {
    const std::vector<double> variances = layer_norm_lines(norm.before, norm.eps).variance.values();
    const auto below =
        std::count_if(variances.begin(), variances.end(), [&](double v) { return v < norm.eps; });
    for (Json& json : norms) {
      if (json["owner"] != norm.owner) continue;
      json["rows"] = rows * cols;
      json["below_eps"] = below;
    }
  }
}

}  // namespace

Json report_row(const train::Run& run, std::size_t budget) {
  const data::Batch batch = first_batch(run);
  const std::vector<std::int32_t> ids = line_of(run, batch.inputs);
  const std::vector<NormRows> rows = norm_rows(run, ids, {1, static_cast<std::int64_t>(ids.size())});
  if (rows.empty()) return nullptr;
  const data::Tokenizer* tokenizer = run.source().tokenizer();
  Json tokens = Json::array(), norms = Json::array();
  for (const std::int32_t id : ids)
    tokens.push_back(tokenizer != nullptr ? std::string(tokenizer->token(id)) : std::to_string(id));
  std::size_t row_bytes = 0;
  const DType dtype = run.settings().dtype;
  for (const NormRows& norm : rows)
    row_bytes += 3 * static_cast<std::size_t>(norm.before.shape().last()) * size_of(dtype);
  const auto keep = static_cast<std::int64_t>(std::max<std::size_t>(1, budget / row_bytes));
  for (const NormRows& norm : rows) norms.push_back(norm_json(norm, dtype, keep));
  add_below_eps(run, batch, norms);
  return {{"step", run.trainer().step_count()},
          {"held_back", run.data().validation != nullptr},
          {"text", tokenizer != nullptr},
          {"bytes", size_of(dtype)},
          {"tokens", tokens},
          {"norms", norms}};
}

}  // namespace handgrad::view
