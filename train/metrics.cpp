#include "handgrad/train/metrics.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "handgrad/train/step_lines.h"

namespace handgrad::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kFlushInterval = std::chrono::milliseconds(100);

double number(const Json& line, const char* key, double fallback) {
  const auto value = line.find(key);
  return value != line.end() && value->is_number() ? value->get<double>() : fallback;
}

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& folder, std::int64_t step)
    : path_(folder / kMetricsFile),
      metrics_(continue_lines(path_, step)),
      timing_(continue_lines(folder / kTimingFile, step)),
      start_(std::chrono::steady_clock::now()),
      flushed_(start_),
      resumed_(step > 0) {
  for (std::string* text : {&line_, &metrics_buffer_, &timing_buffer_}) text->reserve(1 << 16);
}

MetricsWriter::~MetricsWriter() {
  try {
    flush();
  } catch (const std::exception&) {  // flush() reports errors, a destructor cannot
  }
}

void MetricsWriter::put_number(const char* key, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(line_), ", \"{}\": {}", key, value);
  } else {
    fmt::format_to(std::back_inserter(line_), ", \"{}\": null", key);
  }
}

void MetricsWriter::after_step(const Trainer& /*trainer*/, const StepReport& report) {
  fmt::format_to(std::back_inserter(line_), "{{\"step\": {}", report.step);
  put_number("loss", report.loss);
  put_number("lr", report.lr);
  put_number("grad_norm", report.grad_norm);
  if (report.clip_factor != 1) put_number("clip_factor", report.clip_factor);
  const std::optional<double>& loss = report.validation_loss;
  if (loss) put_number("val_loss", *loss);
  if (loss && !std::isfinite(*loss)) line_ += ", \"non_finite\": true";
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  fmt::format_to(std::back_inserter(timing_buffer_),
                 "{{\"step\": {}, \"seconds\": {:.6f}, \"tokens\": {}{}}}\n", report.step, seconds,
                 report.tokens, resumed_ ? ", \"resumed\": true" : "");
  resumed_ = false;
  end_line();
}

void MetricsWriter::add_non_finite(std::int64_t step, double lr) {
  fmt::format_to(std::back_inserter(line_), "{{\"step\": {}, \"loss\": null", step);
  put_number("lr", lr);
  line_ += ", \"non_finite\": true";
  end_line();
  flush();
}

void MetricsWriter::end_line() {
  metrics_buffer_ += line_;
  metrics_buffer_ += "}\n";
  line_.clear();
  const auto now = std::chrono::steady_clock::now();
  if (now - flushed_ < kFlushInterval && metrics_buffer_.size() < (1 << 15)) return;
  flush();
  flushed_ = now;
}

void MetricsWriter::flush() {
  metrics_ << metrics_buffer_ << std::flush;
  timing_ << timing_buffer_ << std::flush;
  metrics_buffer_.clear();
  timing_buffer_.clear();
  if (!metrics_ || !timing_) throw_cannot_write(path_, std::strerror(errno));
}

void for_each_metrics(const std::filesystem::path& folder,
                      const std::function<void(const StepMetrics&)>& visit) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for_each_line(folder / kMetricsFile, "", [&](std::int64_t step, const Json& line) {
    visit({step, number(line, "loss", kNone), number(line, "lr", kNone), number(line, "grad_norm", kNone),
           number(line, "val_loss", kNone), number(line, "clip_factor", 1), line.contains("non_finite")});
  });
}

std::vector<std::int64_t> resumed_after(const std::filesystem::path& folder) {
  std::vector<std::int64_t> steps;
  for_each_line(folder / kTimingFile, "\"resumed\"",
                [&](std::int64_t step, const Json& /*line*/) { steps.push_back(step - 1); });
  return steps;
}

}  // namespace handgrad::train
