#include "handgrad/train/step_lines.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "handgrad/core/error.h"

namespace handgrad::train {
namespace {

using Json = nlohmann::ordered_json;

/// None when the line is not complete.
std::optional<std::int64_t> step_of(const Json& line) {
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) return std::nullopt;
  return line["step"].get<std::int64_t>();
}

Json parsed(const std::string& text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

}  // namespace

std::ofstream continue_lines(const std::filesystem::path& path, std::int64_t last) {
  if (std::ifstream before(path, std::ios::binary); before) {
    std::uintmax_t bytes = 0;
    for (std::string text; last > 0 && std::getline(before, text) && !before.eof();) {
      const std::optional<std::int64_t> step = step_of(parsed(text));
      if (!step || *step > last) break;
      bytes += text.size() + 1;
    }
    before.close();
    std::error_code error;
    std::filesystem::resize_file(path, bytes, error);
    if (error) throw_cannot_write(path, error.message());
  }
  std::ofstream file(path, std::ios::binary | std::ios::app);
  if (!file) throw_cannot_write(path, std::strerror(errno));
  return file;
}

void for_each_line(const std::filesystem::path& path, std::string_view with,
                   const std::function<void(std::int64_t, const Json&)>& visit) {
  std::ifstream file(path, std::ios::binary);
  for (std::string text; std::getline(file, text);) {
    if (text.find(with) == std::string::npos) continue;  // much faster than to parse it
    const Json line = parsed(text);
    if (const auto step = step_of(line)) visit(*step, line);
  }
}

void throw_cannot_write(const std::filesystem::path& path, const std::string& why) {
  throw Error("train", fmt::format("'{}' cannot be written: {}", path.string(), why));
}

}  // namespace handgrad::train
