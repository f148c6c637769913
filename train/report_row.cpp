#include "handgrad/train/report_row.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "handgrad/core/autograd.h"
#include "handgrad/core/parallel.h"
#include "handgrad/nn/layer_norm.h"
#include "handgrad/train/base64.h"
#include "handgrad/train/explain/layer_norm_graph.h"

namespace handgrad::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostTokens = 64, kRowsForEps = 8;

/// What one LayerNorm saw and gave, row after row.
struct Seen {
  std::string owner;
  double eps = 0;
  Array before, output;
};

class Watcher final : public nn::ModuleObserver {
 public:
  void input(const nn::Module& module, const Tensor& x) override {
    const auto* norm = dynamic_cast<const nn::LayerNorm*>(&module);
    if (norm == nullptr || find(module.path()) != nullptr) return;  // the first call of a shared one
    seen_.push_back({module.path(), norm->eps(), x.array().copy(), {}});
  }
  void output(const nn::Module& module, const Tensor& y) override {
    Seen* seen = find(module.path());
    if (seen != nullptr && !seen->output.defined()) seen->output = y.array().copy();
  }
  const std::vector<Seen>& seen() const { return seen_; }

 private:
  Seen* find(const std::string& path) {
    const auto found = std::find_if(seen_.begin(), seen_.end(), [&](auto& s) { return s.owner == path; });
    return found == seen_.end() ? nullptr : &*found;
  }

  std::vector<Seen> seen_;
};

std::vector<Seen> watch(const Run& run, const std::vector<std::int32_t>& ids, const Shape& shape) {
  const FlushSubnormals flush;
  const NoGrad no_grad;
  const nn::EvalMode eval_mode(run.model());
  Watcher watcher;
  const nn::ModuleObserverGuard guard(watcher);
  run.model()(Ids(ids, shape));
  return watcher.seen();
}

/// Rows of what is held back lie side by side in the text; those of training anywhere.
data::Batch first_batch(const Run& run) {
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

/// The first whole line that there is, as far as the model can look.
std::vector<std::int32_t> line_of(const Run& run, const std::vector<std::int32_t>& ids) {
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

Json norm_json(const Seen& seen, DType dtype, std::int64_t keep) {
  const std::int64_t rows = seen.before.shape().without_last().numel(), n = seen.before.shape().last();
  const std::int64_t first = rows - std::min(rows, keep);
  const explain::LayerNormLines before = explain::layer_norm_lines(seen.before, seen.eps),
                                middle = explain::layer_norm_lines(before.normalized, seen.eps),
                                after = explain::layer_norm_lines(seen.output, seen.eps);
  std::vector<double> statistics;
  for (std::int64_t row = 0; row < rows; ++row)
    for (const explain::LayerNormLines* lines : {&before, &middle, &after})
      for (const Array* numbers : {&lines->mean, &lines->variance})
        statistics.push_back(numbers->data<double>()[row]);
  const auto kept = [&](const Array& array) {
    const std::vector<double> numbers = array.values();
    return base64({numbers.begin() + first * n, numbers.end()}, dtype);
  };
  return {{"owner", seen.owner},
          {"eps", seen.eps},
          {"size", n},
          {"first", first},
          {"statistics", base64(statistics, DType::float64)},
          {"before", kept(seen.before)},
          {"normalized", kept(before.normalized)},
          {"output", kept(seen.output)}};
}

/// Of how many rows of a batch, and of how many of them eps is more than the variance.
void add_below_eps(const Run& run, const data::Batch& batch, Json& norms) {
  const std::int64_t rows = std::min(batch.rows, kRowsForEps), cols = std::min(batch.cols, kMostTokens);
  std::vector<std::int32_t> ids;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = batch.inputs.begin() + row * batch.cols;
    ids.insert(ids.end(), begin, begin + cols);
  }
  for (const Seen& seen : watch(run, ids, {rows, cols})) {
    const std::vector<double> variances = explain::layer_norm_lines(seen.before, seen.eps).variance.values();
    const auto below =
        std::count_if(variances.begin(), variances.end(), [&](double v) { return v < seen.eps; });
    for (Json& norm : norms) {
      if (norm["owner"] != seen.owner) continue;
      norm["rows"] = rows * cols;
      norm["below_eps"] = below;
    }
  }
}

}  // namespace

Json report_row(const Run& run, std::size_t budget) {
  const data::Batch batch = first_batch(run);
  const std::vector<std::int32_t> ids = line_of(run, batch.inputs);
  const std::vector<Seen> seen = watch(run, ids, {1, static_cast<std::int64_t>(ids.size())});
  if (seen.empty()) return nullptr;
  const data::Tokenizer* tokenizer = run.source().tokenizer();
  Json tokens = Json::array(), norms = Json::array();
  for (const std::int32_t id : ids)
    tokens.push_back(tokenizer != nullptr ? std::string(tokenizer->token(id)) : std::to_string(id));
  std::size_t row_bytes = 0;
  const DType dtype = run.settings().dtype;
  for (const Seen& s : seen)
    row_bytes += 3 * static_cast<std::size_t>(s.before.shape().last()) * size_of(dtype);
  const auto keep = static_cast<std::int64_t>(std::max<std::size_t>(1, budget / row_bytes));
  for (const Seen& s : seen) norms.push_back(norm_json(s, dtype, keep));
  add_below_eps(run, batch, norms);
  return {{"step", run.trainer().step_count()},
          {"held_back", run.data().validation != nullptr},
          {"text", tokenizer != nullptr},
          {"bytes", size_of(dtype)},
          {"tokens", tokens},
          {"norms", norms}};
}

}  // namespace handgrad::train
