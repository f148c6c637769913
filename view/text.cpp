#include "handgrad/view/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace handgrad::view {

std::string grouped(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string bytes_text(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", bytes, unit);
}

std::string fixed_text(double value, int decimals) {
  if (std::abs(value) < 1e6 || !std::isfinite(value)) return fmt::format("{:.{}f}", value, decimals);
  return fmt::format("{:.2g}", value);
}

std::string duration_text(double seconds) {
  if (seconds < 0.0995) return fmt::format("{:.2g} ms", seconds * 1e3);
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 90 * 60) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string result;
  std::size_t at = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (at > indent && at + 1 + word.size() > columns) {
      result += '\n' + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      result += ' ';
      ++at;
    }
    result += word;
    at += word.size();
  }
  return result;
}

std::string listed(const std::vector<std::string>& words, const char* last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? std::string(" ") + last + " " : ", ";
    text += words[i];
  }
  return text;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 ? std::optional(number)
                                                                                 : std::nullopt;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string outer(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string base64(const void* data, std::size_t bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* byte = static_cast<const std::uint8_t*>(data);
  std::string text;
  text.reserve((bytes + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes; i += 3) {
    const std::size_t have = bytes - i < 3 ? bytes - i : 3;
    std::uint32_t bits = std::uint32_t{byte[i]} << 16;
    if (have > 1) bits |= std::uint32_t{byte[i + 1]} << 8;
    if (have > 2) bits |= byte[i + 2];
    for (std::size_t digit = 0; digit < 4; ++digit)
      text += digit <= have ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
  }
  return text;
}

std::string base64(const std::vector<double>& numbers, DType dtype) {
  if (dtype == DType::float64) return base64(numbers.data(), numbers.size() * sizeof(double));
  const std::vector<float> narrow(numbers.begin(), numbers.end());
  return base64(narrow.data(), narrow.size() * sizeof(float));
}

}  // namespace handgrad::view
