#include "handgrad/train/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "handgrad/nn/summary.h"

namespace handgrad::train {

std::string plural(std::int64_t n, const char* one, const char* many) {
  return fmt::format("{} {}", nn::grouped(n), n == 1 ? one : many);
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

std::string next_lines(const std::vector<std::pair<std::string, std::string>>& commands,
                       std::size_t columns) {
  constexpr std::size_t kIndent = 7, kGap = 3;
  std::size_t width = 0, reason = 0;
  for (const auto& [command, why] : commands) {
    width = std::max(width, command.size());
    reason = std::max(reason, why.size());
  }
  const bool beside = kIndent + width + kGap + reason <= columns;  // else the reason gets a line of its own
  std::string text = "\n";
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const auto& [command, why] = commands[i];
    text += i == 0 ? "next   " : "       ";
    text += beside ? fmt::format("{:<{}}   {}\n", command, width, why)
                   : fmt::format("{}\n         {}\n", command, why);
  }
  return text;
}

}  // namespace handgrad::train
