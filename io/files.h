// Whole files read into a string, and DurableFile: a file whose every write is checked, up to the disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace handgrad::io {

/// The error of a system call on `path`: its text reads `"runs/toy/a": cannot be written: No space left on
/// device`.
[[noreturn]] void throw_file(const std::filesystem::path& path, const char* what, int error_number);
/// Any other error of a file or a folder.
[[noreturn]] void throw_file(const std::filesystem::path& path, const std::string& message,
                             const std::string& advice = {});

/// A new file, or an old one emptied. Every failure is an Error with path and reason. A file that is not
/// finished is removed by the destructor.
class DurableFile {
 public:
  /// Makes the file, or empties the old one. `shown`: what errors name in place of it; empty: itself.
  explicit DurableFile(const std::filesystem::path& path, const std::filesystem::path& shown = {});
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  /// @{ Appends all of it.
  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// @}
  /// Waits until all is on the disk, and closes.
  void finish();

 private:
  std::filesystem::path path_, shown_;
  int file_ = -1;
};

/// Ends the name of what is being written beside the thing itself.
inline constexpr const char* kUnfinished = ".unfinished";

/// Written beside, as PATH.unfinished, and renamed: the file is the old one or holds `text`, never a part of it.
void replace_file(const std::filesystem::path& path, std::string_view text);

/// Waits until the names in `folder` (files made, renamed, removed) are on the disk.
void sync_folder(const std::filesystem::path& folder);

/// The contents of a file.
struct TextFile {
  std::string text;                  ///< every byte except the mark; line ends are unchanged
  bool had_byte_order_mark = false;  ///< the file began with EF BB BF
};

/// Reads a whole file. Error with the quoted path and the reason when it is missing, is a folder or cannot be read.
TextFile read_text_file(const std::filesystem::path& path);

/// A path as messages show it: in quotes.
std::string quoted(const std::filesystem::path& path);

}  // namespace handgrad::io
