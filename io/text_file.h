// Whole files in one string.
#pragma once

#include <filesystem>
#include <string>

namespace handgrad::io {

/// A file as it was read.
struct TextFile {
  std::string text;                  ///< every byte but the mark; line ends stay as they are
  bool had_byte_order_mark = false;  ///< EF BB BF at the beginning was dropped
};

/// The whole of a file. Error with the path in quotes and the reason when it is missing, a folder, not to be
/// opened or not to be read to its end.
TextFile read_text_file(const std::filesystem::path& path);

/// A path as messages show it: in quotes.
std::string quoted(const std::filesystem::path& path);

}  // namespace handgrad::io
