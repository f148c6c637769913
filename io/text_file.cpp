#include "handgrad/io/text_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"

namespace handgrad::io {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string reason(int error_number) { return std::generic_category().message(error_number); }

// The parser's callback sees keys and the ends of objects, so it can hold the keys of all open objects.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(std::string subject) : subject_(std::move(subject)) {}

  bool operator()(int /*depth*/, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) open_.emplace_back();
    if (event == Event::object_end) open_.pop_back();
    if (event == Event::key && !open_.back().insert(parsed.get<std::string>()).second)
      throw Error(subject_, fmt::format("key {} stands twice in one object", parsed.dump()));
    return true;
  }

 private:
  std::string subject_;
  std::vector<std::set<std::string>> open_;
};

// "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without its first part.
std::string without_id(std::string_view what) {
  const auto end = what.find("] ");
  return std::string(end == std::string_view::npos ? what : what.substr(end + 2));
}

// Advice where a file is missing: those of the same kind that stand where it was looked for.
std::string others_beside(const std::filesystem::path& missing) {
  const std::filesystem::path folder = missing.has_parent_path() ? missing.parent_path() : ".";
  std::error_code none;
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().extension() == missing.extension()) names.insert(entry.path().filename().string());
  if (none) return fmt::format("a path from where you are; there is no folder {}", quoted(folder));
  if (names.empty()) return "";
  constexpr std::size_t kMost = 4;
  std::string text = "one that is there";
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (shown == kMost) break;
    text += (shown++ == 0 ? ": " : ", ") + name;
  }
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

std::string quoted(const std::filesystem::path& path) { return '"' + path.string() + '"'; }

TextFile read_text_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw Error(quoted(path), "need a file, got a folder");
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file)
    throw Error(quoted(path), "cannot be opened: " + reason(errno), {},
                errno == ENOENT ? others_beside(path) : "");

  TextFile result;
  std::vector<char> block(1 << 16);
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), file.get()))
    result.text.append(block.data(), count);
  if (std::ferror(file.get())) throw Error(quoted(path), "cannot be read to its end: " + reason(errno));

  result.had_byte_order_mark = result.text.starts_with(kByteOrderMark);
  if (result.had_byte_order_mark) result.text.erase(0, kByteOrderMark.size());
  return result;
}

nlohmann::json read_json_file(const std::filesystem::path& path) {
  const TextFile file = read_text_file(path);
  try {
    return nlohmann::json::parse(file.text, DuplicateKeys(quoted(path)), /*allow_exceptions=*/true,
                                 /*ignore_comments=*/true);
  } catch (const nlohmann::json::exception& error) {
    throw Error(quoted(path), without_id(error.what()));
  }
}

}  // namespace handgrad::io
