// Small pieces of text for tables and pages.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/core/dtype.h"

namespace handgrad::view {

/// 163009536 as "163,009,536", whatever the locale.
std::string grouped(std::int64_t count);

/// "1 step", "300 steps", "12,000 steps"
std::string plural(std::integral auto n, const char* one, const char* many) {
  return grouped(static_cast<std::int64_t>(n)) + " " + (n == 1 ? one : many);
}

/// Readable bytes: "96 B", "59.8 KiB", "621.8 MiB", "2.4 GiB".
std::string bytes_text(double bytes);

/// With so many decimals; from a million on with an exponent, so that columns stay aligned when a run diverges.
std::string fixed_text(double value, int decimals);

/// A readable time: "35 s", "12 min", "3.4 h", "12 days".
std::string duration_text(double seconds);

/// `text` broken between words so that no line is longer than `columns`; every line but the first begins with `indent`
/// blanks. The first is taken to begin at column `indent`.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns);

/// "a, b or c", with "or" or another word before the last.
std::string listed(const std::vector<std::string>& words, const char* last);

/// Parses an integer of at least 0; none when the whole text is not one.
std::optional<std::int64_t> whole_number(std::string_view text);

/// The last part of a module's or parameter's path: "norm1" of "trf_blocks.0.norm1".
std::string last_part(const std::string& path);
/// What is before it: "trf_blocks.0"; empty at the top.
std::string outer(const std::string& path);

/// `bytes` bytes in base64, padded.
std::string base64(const void* data, std::size_t bytes);
/// `numbers` as little-endian elements of `dtype`, in base64.
std::string base64(const std::vector<double>& numbers, DType dtype);

}  // namespace handgrad::view
