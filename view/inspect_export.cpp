// inspect for programs: CSV and JSON. Written through a small buffer, so a long run needs no more memory than
// one step.
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "handgrad/view/inspect.h"

namespace handgrad::view {
namespace {

using Text = fmt::memory_buffer;

constexpr std::size_t kMostText = std::size_t{1} << 16;  // bytes that wait for being written

void write(Text& text, std::ostream& out) {
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  text.clear();
}

const char* non_finite_name(double value) {
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

/// The shortest digits that read back to the same bits in the type of the run.
void put_number(Text& text, double value, DType dtype, bool quote_non_finite) {
  auto to = std::back_inserter(text);
  if (!std::isfinite(value)) {
    const char* quote = quote_non_finite ? "\"" : "";
    fmt::format_to(to, "{}{}{}", quote, non_finite_name(value), quote);
  } else if (dtype == DType::float32) {
    fmt::format_to(to, "{}", static_cast<float>(value));
  } else {
    fmt::format_to(to, "{}", value);
  }
}

void put_list(Text& text, const char* key, const std::vector<double>& values, DType dtype,
              std::ostream& out) {
  auto to = std::back_inserter(text);
  if (values.empty()) {
    fmt::format_to(to, ", \"{}\": null", key);
    return;
  }
  fmt::format_to(to, ", \"{}\": [", key);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) fmt::format_to(to, ", ");
    put_number(text, values[i], dtype, true);
    if (text.size() > kMostText) write(text, out);
  }
  text.push_back(']');
}

void put_key(Text& text, const char* key, const std::optional<double>& value, DType dtype) {
  fmt::format_to(std::back_inserter(text), ", \"{}\": ", key);
  if (value) {
    put_number(text, *value, dtype, true);
  } else {
    fmt::format_to(std::back_inserter(text), "null");
  }
}

void put_statistics(Text& text, const std::optional<train::Statistics>& s, DType dtype) {
  const auto take = [&](double train::Statistics::*number) {
    return s ? std::optional<double>((*s).*number) : std::nullopt;
  };
  put_key(text, "mean", take(&train::Statistics::mean), DType::float64);
  put_key(text, "std", take(&train::Statistics::std), DType::float64);
  put_key(text, "min", take(&train::Statistics::min), dtype);
  put_key(text, "max", take(&train::Statistics::max), dtype);
}

void put_farthest(Text& text, const std::optional<train::Statistics>& s, DType dtype) {
  if (!s) return fmt::format_to(std::back_inserter(text), ", \"farthest\": null"), void();
  fmt::format_to(std::back_inserter(text), ", \"farthest\": {{\"index\": {}, \"value\": ", s->farthest);
  put_number(text, s->farthest_value, dtype, true);
  text.push_back('}');
}

/// Calls visit(parameter, step) for every chosen one, step by step.
template <class Visit>
void for_each(const Selection& s, const Visit& visit) {
  for (const std::int64_t step : s.all_steps())
    for (const std::size_t i : s.parameters)
      if (s.has(i, step)) visit(i, step);
}

void put_values(Text& text, const train::HistoryStep& step, train::Quantity of, std::ostream& out) {
  put_list(text, "values", step.numbers, step.dtype, out);
  if (of != train::Quantity::value) return;
  put_list(text, "gradient", step.gradient, step.dtype, out);
  put_list(text, "update", step.update, DType::float64, out);
}

}  // namespace

void write_csv(const Selection& selection, std::ostream& out) {
  Text text;
  const train::History& history = selection.history;
  const bool value = history.of() == train::Quantity::value;
  out << "step,name,index," << (value ? "value,gradient,update" : name_of(history.of())) << "\n";
  for_each(selection, [&](std::size_t parameter, std::int64_t step) {
    if (!history.has_numbers(parameter, step)) return;
    const train::HistoryStep record = history.read(parameter, step);
    for (std::size_t i = 0; i < record.numbers.size(); ++i) {
      fmt::format_to(std::back_inserter(text), "{},{},{},", step, history.entries()[parameter].name, i);
      put_number(text, record.numbers[i], record.dtype, false);
      if (value) text.push_back(',');
      if (!record.gradient.empty()) put_number(text, record.gradient[i], record.dtype, false);
      if (value) text.push_back(',');
      if (!record.update.empty()) put_number(text, record.update[i], DType::float64, false);
      text.push_back('\n');
    }
    write(text, out);
  });
}

void write_json(const Selection& selection, bool values, std::ostream& out) {
  Text text;
  const train::History& history = selection.history;
  bool first = true;
  for_each(selection, [&](std::size_t parameter, std::int64_t step) {
    const train::History::Item& entry = history.entries()[parameter];
    const train::HistorySummary summary = history.summary(parameter, step);
    auto to = std::back_inserter(text);
    fmt::format_to(to, "{}{{\"step\": {}, \"name\": {}", first ? "[" : ",\n ", step,
                   nlohmann::json(entry.name).dump());
    if (history.of() != train::Quantity::value)
      fmt::format_to(to, ", \"of\": \"{}\"", train::name_of(history.of()));
    fmt::format_to(to, ", \"shape\": {}", entry.shape.text());
    first = false;
    put_statistics(text, summary.statistics, summary.dtype);
    put_farthest(text, summary.statistics, summary.dtype);
    if (!history.from_checkpoints(parameter)) {
      put_key(text, "gradient_norm", summary.gradient_norm, DType::float64);
      put_key(text, "update_norm", summary.update_norm, DType::float64);
    }
    if (values && history.has_numbers(parameter, step))
      put_values(text, history.read(parameter, step), history.of(), out);
    text.push_back('}');
    write(text, out);
  });
  out << (first ? "[]\n" : "]\n");
}

// ---- One tensor

void write_csv(const std::string& name, const Array& array, std::ostream& out) {
  Text text;
  for (std::int64_t i = 0; i < array.numel(); ++i) {
    fmt::format_to(std::back_inserter(text), "{},{},", name, i);
    put_number(text, array.value(i), array.dtype(), false);
    text.push_back('\n');
    if (text.size() > kMostText) write(text, out);
  }
  write(text, out);
}

void write_json(const std::string& name, const Array& array, bool values, std::ostream& out) {
  Text text;
  const std::vector<double> numbers = array.values();
  fmt::format_to(std::back_inserter(text), "{{\"step\": null, \"name\": {}, \"shape\": {}",
                 nlohmann::json(name).dump(), array.shape().text());
  put_statistics(text, train::statistics(numbers, {}), array.dtype());
  put_farthest(text, std::nullopt, array.dtype());
  if (values) put_list(text, "values", numbers, array.dtype(), out);
  text.push_back('}');
  write(text, out);
}

}  // namespace handgrad::view
