#include "handgrad/view/explain/sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "handgrad/core/autograd.h"
#include "handgrad/core/ops.h"

namespace handgrad::view::explain {
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

// ---- What several sheets say

Moments moments(const std::vector<double>& row, DType dtype) {
  const NoGrad no_grad;
  const Tensor x = Tensor::of(row, {static_cast<std::int64_t>(row.size())}, dtype);
  Moments m{sum(x).item(), mean(x).item(), var(x, kLast).item()};
  double absolute = 0;
  for (const double value : row) absolute += std::abs(value);
  if (std::abs(m.sum) <= (dtype == DType::float32 ? 1e-5 : 1e-13) * absolute) m.sum = m.mean = 0;
  return m;
}

std::size_t one_hot(const std::vector<double>& row) {
  std::size_t found = row.size();
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] == 0) continue;
    if (row[i] != 1 || found < row.size()) return row.size();
    found = i;
  }
  return found;
}

std::string spaced(const std::vector<double>& row) {
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row.size() > 8 && i >= 3 && i + 1 < row.size()) {
      if (i == 3) text += " ...";
      continue;
    }
    text += (i == 0 ? "" : " ") + number_text(row[i]);
  }
  return text;
}

bool has_rounding(const std::vector<Array>& rows) {
  for (const Array& row : rows) {
    const double small = row.dtype() == DType::float32 ? 1e-6 : 1e-13;
    double largest = 0;
    for (const double value : row.values()) largest = std::max(largest, std::abs(value));
    for (const double value : row.values())
      if (value != 0 && std::abs(value) < small * largest) return true;
  }
  return false;
}

std::string python_number(double value) {
  if (std::isnan(value)) return "float('nan')";
  if (std::isinf(value)) return value > 0 ? "float('inf')" : "-float('inf')";
  const std::string text = fmt::format("{}", value);
  if (text.find('e') != std::string::npos) return text;
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) return text + ".";
  return text.ends_with(".0") ? text.substr(0, dot + 1) : text;
}

std::string python_list(const std::vector<double>& row) {
  std::string text;
  for (const double value : row) text += (text.empty() ? "[" : ", ") + python_number(value);
  return text + "]";
}

std::string python_rows(const std::vector<std::vector<double>>& rows) {
  std::string text;
  for (const auto& row : rows) text += (text.empty() ? "[" : ", ") + python_list(row);
  return text + "]";
}

std::string python_head() { return "import torch\ntorch.set_printoptions(precision=8)\n"; }

std::string python_leaf(const char* name, const std::string& values, DType dtype) {
  return fmt::format("{} = torch.tensor({}, dtype=torch.{}, requires_grad=True)\n", name, values,
                     name_of(dtype));
}

std::string python_backward(const char* name, const std::vector<std::vector<double>>& upstream, DType dtype) {
  return fmt::format("{}.backward(torch.tensor({}, dtype=torch.{}))\n", name, python_rows(upstream),
                     name_of(dtype));
}

std::string python_line(const std::string& code, const std::string& expected) {
  constexpr std::size_t kColumns = 100;
  const std::size_t width = code.size() + 3 + expected.size();
  if (width > kColumns) return fmt::format("{}\n# {}\n", code, expected);
  const std::size_t gap = std::min(std::max<std::size_t>(58, code.size()), code.size() + kColumns - width);
  return fmt::format("{:<{}} # {}\n", code, gap, expected);
}

std::string python_expected(const Array& array) {
  const std::vector<double> all = array.values();
  const auto width = static_cast<std::ptrdiff_t>(array.shape().last());
  std::string text;
  for (auto at = all.begin(); at != all.end(); at += width)
    text += (text.empty() ? "" : " / ") + signed_row({at, at + width});
  return text;
}

std::string signed_row(const std::vector<double>& row) {
  std::string text;
  for (const std::string& number : row_text(row, kDigits, 11))
    text += (text.empty() ? "" : number.starts_with('-') ? " " : "  ") + number;
  return text;
}

}  // namespace handgrad::view::explain
