#include "handgrad/view/report_data.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/train/run_folder.h"
#include "handgrad/train/samples.h"
#include "handgrad/view/report_metrics.h"
#include "handgrad/view/report_norms.h"
#include "handgrad/view/report_row.h"

namespace handgrad::view {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A file's contents; an empty object when it is missing or not JSON.
Json read_json(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json::object();
}

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

std::int64_t planned_steps(const Json& config, const train::Run* run) {
  if (run != nullptr) return run->steps();
  const Json::json_pointer steps("/train/steps");
  return config.contains(steps) && config[steps].is_number_integer() ? config[steps].get<std::int64_t>() : 0;
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
  const std::int64_t steps = planned_steps(config, options.run);
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

}  // namespace handgrad::view
