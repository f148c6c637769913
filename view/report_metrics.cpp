#include "handgrad/view/report_metrics.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "handgrad/train/metrics.h"
#include "handgrad/view/report_norms.h"

namespace handgrad::view {
namespace {

using Json = nlohmann::ordered_json;

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
