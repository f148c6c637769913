#include "handgrad/io/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "handgrad/core/error.h"

namespace handgrad::io {
namespace {

// One call writes at most 2 GiB on Linux.
constexpr std::size_t kLargestWrite = std::size_t{1} << 30;

// Pipes and devices have nothing to be synchronized.
bool synced(int file) { return fsync(file) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP; }

}  // namespace

void throw_file(const std::filesystem::path& path, const char* what, int error_number) {
  throw Error('"' + path.string() + '"',
              std::string(what) + ": " + std::generic_category().message(error_number));
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

}  // namespace handgrad::io
