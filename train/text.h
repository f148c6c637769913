// Small pieces of text that several tables print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace handgrad::train {

/// "1 step", "300 steps", "12,000 steps"
std::string plural(std::int64_t n, const char* one, const char* many);

/// Bytes as a person reads them: "96 B", "59.8 KiB", "621.8 MiB", "2.4 GiB".
std::string bytes_text(double bytes);

/// With so many decimals; from a million on with an exponent, so that a table of a run that went astray stays one.
std::string fixed_text(double value, int decimals);

/// A time as a person reads it: "35 s", "12 min", "3.4 h", "12 days".
std::string duration_text(double seconds);

/// `text` broken between words so that no line is longer than `columns`; every line but the first begins with `indent`
/// blanks. The first is taken to begin at column `indent`.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns);

/// "a, b or c", with "or" or another word before the last.
std::string listed(const std::vector<std::string>& words, const char* last);

/// Closes a command: at most two lines, each a command that can be typed as it stands, and what it shows.
std::string next_lines(const std::vector<std::pair<std::string, std::string>>& commands, std::size_t columns);

}  // namespace handgrad::train
