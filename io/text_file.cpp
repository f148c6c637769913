#include "handgrad/io/text_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "handgrad/core/error.h"

namespace handgrad::io {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string reason(int error_number) { return std::generic_category().message(error_number); }

// Advice for a missing file: the files with the same extension in its folder.
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

}  // namespace handgrad::io
