#include "handgrad/train/explain/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "handgrad/core/autograd.h"
#include "handgrad/core/ops.h"
#include "handgrad/train/explain/numbers.h"

namespace handgrad::train::explain {

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

bool has_rounding(const std::vector<const std::vector<double>*>& rows, DType dtype) {
  const double small = dtype == DType::float32 ? 1e-6 : 1e-13;
  for (const auto* row : rows) {
    double largest = 0;
    for (const double value : *row) largest = std::max(largest, std::abs(value));
    for (const double value : *row)
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

}  // namespace handgrad::train::explain
