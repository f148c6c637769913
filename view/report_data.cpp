#include "handgrad/view/report.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/train/metrics.h"
#include "handgrad/train/run_folder.h"
#include "handgrad/train/samples.h"
#include "handgrad/view/inspect.h"

namespace handgrad::view {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void add_keys(const Json& value, const std::string& key, const Json& origins, Json& list) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [name, inner] : value.items())
      add_keys(inner, key.empty() ? name : key + "." + name, origins, list);
    return;
  }
  list.push_back({key, value.dump(), origins.value(key, "")});
}

/// Every key of the config: its name with dots, its value, and where that came from as far as meta.json knows.
Json config_of(const fs::path& folder, const Json& config) {
  const Json meta = read_json(folder / "meta.json");
  const bool known = meta.contains("origins") && meta["origins"].is_object();
  Json list = Json::array();
  add_keys(config, "", known ? meta["origins"] : Json::object(), list);
  return list;
}

const char* state_of(std::int64_t step, std::int64_t steps, bool running, bool non_finite) {
  if (running) return "running";
  if (non_finite) return "non_finite";
  if (step == 0) return "empty";
  return steps > 0 && step < steps ? "interrupted" : "finished";
}

/// Name, shape, count and whether it decays, for every parameter; and whether it is frozen.
Json parameters_of(const train::Run& run) {
  Json list = Json::array();
  for (const nn::NamedParameter& named : run.trainer().parameters()) {
    const Parameter& p = *named.parameter;
    list.push_back({named.name, p.shape().text(), p.array().numel(), p.decay(), p.frozen()});
  }
  return list;
}

}  // namespace

Json report_data(const fs::path& folder, const ReportOptions& options) {
  const Json config = read_json(folder / "config.json");
  const Json norms = report_norms(folder, options.budget, options.stop);
  std::vector<std::int64_t> columns;
  if (!norms.is_null()) columns = norms["columns"].get<std::vector<std::int64_t>>();
  const Json metrics = report_metrics(folder, columns, options.stop);
  const std::int64_t steps = options.run != nullptr ? options.run->steps() : planned_steps(config);
  const std::int64_t step =
      std::max(metrics["last"].get<std::int64_t>(), columns.empty() ? 0 : columns.back());
  Json data{
      {"name", train::run_name(folder)},
      {"path", (folder.has_filename() ? folder : folder.parent_path()).generic_string()},  // without "/"
      {"state", state_of(step, steps, options.running, !metrics["non_finite"].is_null())},
      {"step", step},
      {"steps", steps},
      {"optimizer", config.value(Json::json_pointer("/optimizer/type"), "")},
      {"grad_clip", config.value(Json::json_pointer("/train/grad_clip"), 0.0)},
      {"norms", norms},
      {"metrics", metrics},
      {"texts", train::read_samples(folder)},
      {"config", config_of(folder, config)}};
  data["why_no_run"] = options.why_no_run;
  data["row"] = options.run == nullptr ? Json() : report_row(*options.run, options.row_budget);
  data["parameters"] = options.run == nullptr ? Json() : parameters_of(*options.run);
  return data;
}

// ---- Metrics

namespace {

constexpr std::size_t kMostPoints = 900, kMostEvaluations = 300;

using Line = train::StepMetrics;

Json or_null(double value) { return value == value ? Json(value) : Json(); }

/// Every n-th evaluation; always the last one.
Json evaluations(const std::vector<Line>& lines) {
  std::vector<const Line*> all;
  for (const Line& line : lines)
    if (line.validation_loss == line.validation_loss) all.push_back(&line);
  const std::size_t stride = all.size() / kMostEvaluations + 1;
  Json list = Json::array();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % stride == 0 || i + 1 == all.size()) list.push_back({all[i]->step, all[i]->validation_loss});
  return list;
}

}  // namespace

Json report_metrics(const std::filesystem::path& folder, const std::vector<std::int64_t>& columns,
                    const std::atomic<bool>* stop) {
  std::vector<Line> lines;
  train::for_each_metrics(folder, [&](const Line& line) {
    check_not_stopped(stop);
    lines.push_back(line);
  });
  const std::size_t stride = lines.empty() ? 1 : (lines.size() - 1) / kMostPoints + 1;
  Json steps = Json::array(), loss = Json::array(), lr = Json::array(), grad_norm = Json::array(),
       clipped_steps = Json::array(), non_finite;
  std::int64_t clipped = 0, last = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    const bool made = line.loss == line.loss;
    if (made) last = line.step;
    if (!made && non_finite.is_null()) non_finite = line.step;
    const bool was_clipped = line.clip_factor != 1;
    clipped += was_clipped ? 1 : 0;
    if (i % stride != 0 && i + 1 != lines.size() && !line.non_finite &&
        !std::binary_search(columns.begin(), columns.end(), line.step))
      continue;
    if (was_clipped) clipped_steps.push_back(line.step);
    steps.push_back(line.step);
    loss.push_back(or_null(line.loss));
    lr.push_back(or_null(line.lr));
    grad_norm.push_back(or_null(line.grad_norm));
  }
  return {{"last", last},
          {"steps", steps},
          {"loss", loss},
          {"lr", lr},
          {"grad_norm", grad_norm},
          {"validation", evaluations(lines)},
          {"thinned", stride},
          {"clipped", clipped},
          {"clipped_steps", clipped_steps},
          {"non_finite", non_finite},
          {"resumed", train::resumed_after(folder)}};
}

}  // namespace handgrad::view
