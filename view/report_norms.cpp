#include "handgrad/view/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/train/recording.h"
#include "handgrad/view/inspect.h"
#include "handgrad/view/text.h"

namespace handgrad::view {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostColumns = 301, kLeastColumns = 61;
constexpr std::size_t kEnoughFeatures = 24, kLeastFeatures = 8;
constexpr std::size_t kMostFeatures = 192;  // more rows are unreadable and slow the page down

/// How much of a recording goes into a page.
struct Plan {
  std::vector<std::size_t> parameters;  // vectors
  std::vector<std::int64_t> columns;
  std::size_t features = 0;  // of each parameter, at most
};

Plan make_plan(const train::Recording& recording, std::size_t budget) {
  Plan plan;
  std::size_t all = 0;
  for (std::size_t i = 0; i < recording.parameters().size(); ++i) {
    const Shape& shape = recording.parameters()[i].shape;
    if (shape.rank() != 1 || shape.numel() == 0) continue;
    plan.parameters.push_back(i);
    all += static_cast<std::size_t>(shape.numel());
    plan.features = std::max(plan.features, static_cast<std::size_t>(shape.numel()));
  }
  const std::vector<std::int64_t> steps = recording.steps();
  const std::size_t cells = budget / (3 * size_of(recording.dtype()));
  auto columns = static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(steps), kMostColumns));
  const std::size_t count = std::max<std::size_t>(plan.parameters.size(), 1);
  if (all * columns > cells) {
    if (cells / (count * columns) < kEnoughFeatures)
      columns = std::min(columns, std::max<std::size_t>(kLeastColumns, cells / (count * kEnoughFeatures)));
    plan.features = std::max(kLeastFeatures, cells / (count * columns));
  }
  plan.features = std::min(plan.features, kMostFeatures);
  plan.columns = column_steps(steps, static_cast<std::int64_t>(columns));
  return plan;
}

/// Two thirds of them from the beginning of a ranking, the rest from its end.
std::vector<std::size_t> shortened(const std::vector<std::size_t>& ranked, std::size_t most) {
  if (ranked.size() <= most) return ranked;
  const auto first = static_cast<std::ptrdiff_t>(most - most / 3);
  const auto last = static_cast<std::ptrdiff_t>(most / 3);
  std::vector<std::size_t> chosen(ranked.begin(), ranked.begin() + first);
  chosen.insert(chosen.end(), ranked.end() - last, ranked.end());
  return chosen;
}

/// The series of one parameter, column after column.
struct Series {
  std::vector<double> values, gradients, steps, range, mean;  // steps: the value before, or the update

  /// `before`: of the record before; empty when updates are shown.
  void add(const train::RecordedStep& record, const std::vector<std::size_t>& features,
           const std::vector<double>& before, const std::vector<double>& start) {
    for (const std::size_t i : features) {
      values.push_back(record.value[i]);
      gradients.push_back(record.gradient.empty() ? std::nan("") : record.gradient[i]);
      if (before.empty()) {
        steps.push_back(record.update.empty() ? 0 : record.update[i]);
      } else {
        steps.push_back(before[i]);
      }
    }
    const train::Statistics s = train::statistics(record.value, start);
    range.insert(range.end(), {s.min, s.max});
    mean.push_back(s.mean);
  }
};

/// A part of 1 with as many digits as a page needs.
Json rounded(const std::vector<double>& parts) {
  Json list = Json::array();
  for (const double part : parts) list.push_back(std::round(part * 1e6) / 1e6);
  return list;
}

/// What a page shows of one parameter, gathered record after record.
class ParameterHistory {
 public:
  ParameterHistory(const train::Recording& recording, std::size_t parameter, const Plan& plan)
      : recording_(recording),
        name_(recording.parameters()[parameter].name),
        path_(recording.read(parameter, 0).value, recording.read(parameter, plan.columns.back()).value),
        features_(shortened(path_.ranking(), plan.features)) {
    if (!update_is_recorded()) before_ = path_.start;
  }

  void add(const train::RecordedStep& record, bool has_column) {
    path_.add(record.step, record.value, record.gradient);
    if (has_column) series_.add(record, features_, before_, path_.start);
    if (!update_is_recorded()) before_ = record.value;
  }

  Json json(bool all_columns) const {
    std::vector<double> agreements, below;
    Json half = Json::array();
    for (const std::size_t i : features_) {
      agreements.push_back(path_.agreement(i));
      below.push_back(path_.gradients > 0 ? path_.negative[i] / static_cast<double>(path_.gradients) : 0);
      half.push_back(path_.half_way[i]);
    }
    const std::optional<double> start = common_start(path_.start);
    const DType dtype = recording_.dtype();
    Json json{{"name", name_},
              {"owner", outer(name_)},
              {"kind", last_part(name_)},
              {"size", path_.start.size()},
              {"start", start ? Json(*start) : Json()},
              {"features", features_},
              {"last", base64(path_.last, dtype)},
              {"agreement", rounded(agreements)},
              {"below", rounded(below)},
              {"half", half},
              {"range", base64(series_.range, dtype)},
              {"mean", base64(series_.mean, DType::float64)},
              {"values", base64(series_.values, dtype)},
              {"gradients", base64(series_.gradients, dtype)}};
    if (update_is_recorded()) {
      json["updates"] = base64(series_.steps, dtype);
    } else if (!all_columns) {
      json["before"] = base64(series_.steps, dtype);
    }
    return json;
  }

 private:
  bool update_is_recorded() const { return recording_.every() != 1; }

  const train::Recording& recording_;
  std::string name_;
  Trajectory path_;
  std::vector<double> before_;
  std::vector<std::size_t> features_;
  Series series_;
};

}  // namespace

void check_not_stopped(const std::atomic<bool>* stop) {
  if (stop != nullptr && *stop) throw Error("report", "stopped before it was gathered");
}

std::vector<std::int64_t> column_steps(const std::vector<std::int64_t>& steps, std::int64_t most) {
  const auto count = static_cast<std::int64_t>(steps.size());
  const std::int64_t stride = count <= most ? 1 : (count - 2) / std::max<std::int64_t>(most - 1, 1) + 1;
  std::vector<std::int64_t> columns;
  for (std::int64_t i = 0; i < count; i += stride) columns.push_back(steps[static_cast<std::size_t>(i)]);
  if (count > 0 && columns.back() != steps.back()) columns.push_back(steps.back());
  return columns;
}

Json report_norms(const std::filesystem::path& folder, std::size_t budget, const std::atomic<bool>* stop) {
  if (!std::filesystem::exists(folder / train::kRecordingFile)) return nullptr;
  const train::Recording recording(folder / train::kRecordingFile);
  if (recording.last_step() < 0) return nullptr;
  const Plan plan = make_plan(recording, budget);
  std::vector<ParameterHistory> histories;
  for (const std::size_t i : plan.parameters) histories.emplace_back(recording, i, plan);
  std::size_t column = 0;
  recording.for_each_step(plan.parameters, [&](const std::vector<train::RecordedStep>& steps) {
    check_not_stopped(stop);
    if (steps.empty()) return;
    const bool has_column = steps.front().step == plan.columns[column];
    for (std::size_t k = 0; k < steps.size(); ++k) histories[k].add(steps[k], has_column);
    column += has_column ? 1 : 0;
  });
  const std::size_t records = recording.steps().size();
  Json parameters = Json::array();
  for (const ParameterHistory& history : histories)
    parameters.push_back(history.json(plan.columns.size() == records));
  return {{"columns", plan.columns},
          {"every", recording.every()},
          {"records", records},
          {"bytes", size_of(recording.dtype())},
          {"matrices", recording.parameters().size() - plan.parameters.size()},
          {"parameters", parameters}};
}

}  // namespace handgrad::view
