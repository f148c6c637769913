#include "handgrad/io/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "handgrad/core/error.h"

namespace handgrad::io {
namespace {

// One call writes at most 2 GiB on Linux.
constexpr std::size_t kLargestWrite = std::size_t{1} << 30;

// Pipes and devices have nothing to be synchronized.
bool synced(int file) { return fsync(file) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP; }

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
  if (none)
    return fmt::format("a path relative to the current folder; there is no folder {}", quoted(folder));
  if (names.empty()) return "";
  constexpr std::size_t kMost = 4;
  std::string text = "a file in that folder";
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (shown == kMost) break;
    text += (shown++ == 0 ? ": " : ", ") + name;
  }
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

void throw_file(const std::filesystem::path& path, const char* what, int error_number) {
  throw_file(path, std::string(what) + ": " + reason(error_number));
}

void throw_file(const std::filesystem::path& path, const std::string& message, const std::string& advice) {
  throw Error(quoted(path), message, {}, advice);
}

DurableFile::DurableFile(const std::filesystem::path& path, const std::filesystem::path& shown)
    : path_(path), shown_(shown.empty() ? path : shown) {
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) throw_file(shown_, "cannot be written", errno);
}

DurableFile::~DurableFile() {
  if (file_ < 0) return;
  struct stat about {};
  const bool ordinary = fstat(file_, &about) == 0 && S_ISREG(about.st_mode);
  close(file_);
  if (ordinary) unlink(path_.c_str());
}

void DurableFile::write(const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(file_, next, std::min(bytes, kLargestWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file(shown_, "cannot be written", errno);
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void DurableFile::finish() {
  if (!synced(file_)) throw_file(shown_, "cannot be written", errno);
  const int file = file_;
  file_ = -1;
  if (close(file) != 0) throw_file(shown_, "cannot be written", errno);
}

void replace_file(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path beside = path.string() + kUnfinished;
  DurableFile file(beside, path);
  file.write(text);
  file.finish();
  std::error_code error, ignored;
  std::filesystem::rename(beside, path, error);
  if (!error) return;
  std::filesystem::remove(beside, ignored);
  throw_file(path, "cannot be written", error.value());
}

void sync_folder(const std::filesystem::path& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) throw_file(folder, "cannot be opened", errno);
  const bool ok = synced(file);
  const int reason = errno;
  close(file);
  if (!ok) throw_file(folder, "cannot be written", reason);
}

// ---- Reading

std::string quoted(const std::filesystem::path& path) { return '"' + path.string() + '"'; }

TextFile read_text_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw_file(path, "need a file, got a folder");
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file)
    throw_file(path, "cannot be opened: " + reason(errno), errno == ENOENT ? others_beside(path) : "");

  TextFile result;
  std::vector<char> block(1 << 16);
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), file.get()))
    result.text.append(block.data(), count);
  if (std::ferror(file.get())) throw_file(path, "cannot be read to its end", errno);

  result.had_byte_order_mark = result.text.starts_with(kByteOrderMark);
  if (result.had_byte_order_mark) result.text.erase(0, kByteOrderMark.size());
  return result;
}

}  // namespace handgrad::io
