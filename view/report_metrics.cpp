#include "handgrad/view/report_metrics.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "handgrad/view/report_data.h"

namespace handgrad::view {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPoints = 900, kMostEvaluations = 300;

/// One line of metrics.jsonl; NaN: the line does not have it, or it was not finite.
struct Line {
  std::int64_t step = 0;
  double loss, lr, grad_norm, validation_loss, clip_factor;
  bool non_finite;
};

double number(const Json& line, const char* key, double fallback) {
  const auto value = line.find(key);
  return value != line.end() && value->is_number() ? value->get<double>() : fallback;
}

/// Calls `visit` for every complete line that has the text `with`; what a kill cut off is passed over.
template <class Visit>
void for_each_line(const std::filesystem::path& path, std::string_view with, const std::atomic<bool>* stop,
                   const Visit& visit) {
  std::ifstream file(path, std::ios::binary);
  for (std::string text; std::getline(file, text);) {
    check_not_stopped(stop);
    if (text.find(with) == std::string::npos) continue;  // much faster than to parse it
    const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (line.is_object() && line.contains("step") && line["step"].is_number_integer()) visit(line);
  }
}

std::vector<Line> read_lines(const std::filesystem::path& path, const std::atomic<bool>* stop) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<Line> lines;
  for_each_line(path, "\"step\"", stop, [&](const Json& json) {
    lines.push_back({json["step"].get<std::int64_t>(), number(json, "loss", kNone), number(json, "lr", kNone),
                     number(json, "grad_norm", kNone), number(json, "val_loss", kNone),
                     number(json, "clip_factor", 1), json.contains("non_finite")});
  });
  return lines;
}

/// The last steps before an interruption: the next line says that it resumed.
std::vector<std::int64_t> resumed_after(const std::filesystem::path& path, const std::atomic<bool>* stop) {
  std::vector<std::int64_t> steps;
  for_each_line(path, "\"resumed\"", stop,
                [&](const Json& line) { steps.push_back(line["step"].get<std::int64_t>() - 1); });
  return steps;
}

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
  const std::vector<Line> lines = read_lines(folder / "metrics.jsonl", stop);
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
          {"resumed", resumed_after(folder / "timing.jsonl", stop)}};
}

}  // namespace handgrad::view
