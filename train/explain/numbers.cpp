#include "handgrad/train/explain/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace handgrad::train::explain {
namespace {

double from_text(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool has_exponent(const std::string& text) { return text.find('e') != std::string::npos; }

}  // namespace

std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{:.{}g}", value == 0 ? 0.0 : value, digits);
}

std::string constant_text(double value) {
  if (std::isfinite(value) && std::abs(value) >= 1e-7 && std::abs(value) < 1)
    for (int decimals = 1; decimals < 20; ++decimals)
      if (const std::string text = fmt::format("{:.{}f}", value, decimals); from_text(text) == value)
        return text;
  return std::isfinite(value) ? fmt::format("{}", value == 0 ? 0.0 : value) : number_text(value);
}

std::vector<std::string> row_text(const std::vector<double>& row, int digits, std::size_t width) {
  std::vector<std::string> texts;
  bool plain = false;  // whether some number needs no exponent
  for (const double value : row) {
    texts.push_back(number_text(value, digits));
    plain = plain || (std::isfinite(value) && value != 0 && !has_exponent(texts.back()));
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (plain && has_exponent(texts[i])) texts[i] = number_text(row[i], 3);
    for (int fewer = digits - 1; texts[i].size() > width && fewer > 0; --fewer)
      texts[i] = number_text(row[i], fewer);
  }
  return texts;
}

nlohmann::ordered_json json_number(double value, DType dtype) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  // The double nearest to a float's shortest digits: its own shortest digits are the same.
  return dtype == DType::float32 ? from_text(fmt::format("{}", static_cast<float>(value))) : value;
}

nlohmann::ordered_json json_row(const std::vector<double>& row, DType dtype) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const double value : row) list.push_back(json_number(value, dtype));
  return list;
}

namespace {

/// What fits on a line. Numbers have the shortest digits that there are; nlohmann's are sometimes longer.
void put_line(std::string& text, const nlohmann::ordered_json& json) {
  if (json.is_number_float()) {
    text += fmt::format("{}", json.get<double>());
  } else if (json.is_array()) {
    text += '[';
    for (std::size_t i = 0; i < json.size(); ++i) {
      if (i > 0) text += ", ";
      put_line(text, json[i]);
    }
    text += ']';
  } else {
    text += json.dump();
  }
}

void put_json(std::string& text, const nlohmann::ordered_json& json, std::size_t depth) {
  const bool rows = json.is_array() && !json.empty() && json.front().is_structured();
  if (!json.is_object() && !rows) return put_line(text, json);
  text += json.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& item : json.items()) {
    text += (first ? "\n" : ",\n") + std::string(depth + 1, ' ');
    if (json.is_object()) text += nlohmann::ordered_json(item.key()).dump() + ": ";
    put_json(text, item.value(), depth + 1);
    first = false;
  }
  text += '\n' + std::string(depth, ' ');
  text += json.is_object() ? '}' : ']';
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& json) {
  std::string text;
  put_json(text, json, 0);
  return text;
}

}  // namespace handgrad::train::explain
