// inspect for programs: CSV and JSON. Written through a small buffer, so a long run needs no more memory than
// one step.
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "handgrad/train/inspect.h"

namespace handgrad::train {
namespace {

using Text = fmt::memory_buffer;

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

void put_list(Text& text, const char* key, const std::vector<double>& values, DType dtype) {
  auto to = std::back_inserter(text);
  if (values.empty()) {
    fmt::format_to(to, ", \"{}\": null", key);
    return;
  }
  fmt::format_to(to, ", \"{}\": [", key);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) fmt::format_to(to, ", ");
    put_number(text, values[i], dtype, true);
  }
  text.push_back(']');
}

template <class Visit>
void for_each_record(const Selection& s, const Visit& visit) {
  for (const std::int64_t step : s.recording.steps(s.first, s.last))
    for (const std::size_t i : s.parameters) visit(i, s.recording.read(i, step));
}

}  // namespace

void write_csv(const Selection& selection, std::ostream& out) {
  Text text;
  const DType dtype = selection.recording.dtype();
  out << "step,name,index,value,gradient,update\n";
  for_each_record(selection, [&](std::size_t parameter, const RecordedStep& record) {
    const std::string& name = selection.recording.parameters()[parameter].name;
    for (std::size_t i = 0; i < record.value.size(); ++i) {
      fmt::format_to(std::back_inserter(text), "{},{},{},", record.step, name, i);
      put_number(text, record.value[i], dtype, false);
      text.push_back(',');
      if (!record.gradient.empty()) put_number(text, record.gradient[i], dtype, false);
      text.push_back(',');
      if (!record.update.empty()) put_number(text, record.update[i], DType::float64, false);
      text.push_back('\n');
    }
    write(text, out);
  });
}

void write_json(const Selection& selection, bool values, std::ostream& out) {
  Text text;
  const DType dtype = selection.recording.dtype();
  std::vector<std::vector<double>> start(selection.recording.parameters().size());
  for (const std::size_t i : selection.parameters) start[i] = selection.recording.read(i, 0).value;
  bool first = true;
  for_each_record(selection, [&](std::size_t parameter, const RecordedStep& record) {
    const RecordedParameter& p = selection.recording.parameters()[parameter];
    const Statistics s = statistics(record.value, start[parameter]);
    auto to = std::back_inserter(text);
    fmt::format_to(to, "{}{{\"step\": {}, \"name\": {}, \"shape\": {}", first ? "[" : ",\n ", record.step,
                   nlohmann::json(p.name).dump(), p.shape.text());
    first = false;
    for (const auto& [key, value] :
         {std::pair{"mean", s.mean}, {"std", s.std}, {"min", s.min}, {"max", s.max}}) {
      fmt::format_to(to, ", \"{}\": ", key);
      const bool is_element = key[0] == 'm' && key[1] != 'e';
      put_number(text, value, is_element ? dtype : DType::float64, true);
    }
    fmt::format_to(to, ", \"farthest\": {{\"index\": {}, \"value\": ", s.farthest);
    put_number(text, record.value.empty() ? 0 : record.value[s.farthest], dtype, true);
    text.push_back('}');
    if (values) {
      put_list(text, "values", record.value, dtype);
      put_list(text, "gradient", record.gradient, dtype);
      put_list(text, "update", record.update, DType::float64);
    }
    text.push_back('}');
    write(text, out);
  });
  out << (first ? "[]\n" : "]\n");
}

}  // namespace handgrad::train
