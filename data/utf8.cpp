#include "handgrad/data/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace handgrad::data {
namespace {

CodePoint invalid(const char* problem, bool cut_off = false) {
  CodePoint result;
  result.problem = problem;
  result.cut_off = cut_off;
  return result;
}

CodePoint valid(char32_t value, int length) {
  CodePoint result;
  result.value = value;
  result.length = length;
  return result;
}

// What is wrong with a second byte that cannot follow this first byte although it is a continuation.
const char* second_byte_problem(unsigned first) {
  if (first == 0xE0 || first == 0xF0) return "is an overlong form";
  if (first == 0xED) return "is a surrogate";
  return "is above U+10FFFF";
}

// Code points that show nothing, or change what stands beside them.
bool is_visible(char32_t value) {
  static constexpr std::pair<char32_t, char32_t> kInvisible[] = {
      {0x0000, 0x0020}, {0x007F, 0x00A0}, {0x00AD, 0x00AD}, {0x0300, 0x036F},
      {0x200B, 0x200F}, {0x2028, 0x202F}, {0x205F, 0x206F}, {0xD800, 0xF8FF},
      {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFF}, {0xE0000, 0x10FFFF}};
  return std::none_of(std::begin(kInvisible), std::end(kInvisible),
                      [&](const auto& range) { return range.first <= value && value <= range.second; });
}

}  // namespace

CodePoint read_code_point(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return valid(first, 1);
  if (first < 0xC0) return invalid("is a continuation without a beginning");
  if (first < 0xC2) return invalid("is an overlong form");
  if (first > 0xF4) return invalid(first < 0xF8 ? "is above U+10FFFF" : "never occurs in UTF-8");

  const int length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const unsigned lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  char32_t value = first & (0x7Fu >> length);
  for (std::size_t i = 1; i < static_cast<std::size_t>(length); ++i) {
    if (offset + i >= text.size()) return invalid("begins a character that the text cuts off", true);
    if ((byte(i) & 0xC0) != 0x80) return invalid("begins a character that the next bytes do not continue");
    if (i == 1 && (byte(i) < lowest || byte(i) > highest)) return invalid(second_byte_problem(first));
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  return valid(value, length);
}

void append_code_point(std::string& text, char32_t value) {
  const auto append = [&](std::uint32_t byte) {
    text += static_cast<char>(static_cast<unsigned char>(byte));
  };
  if (value < 0x80) return append(value);
  const int continuations = value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;
  const std::uint32_t mark = continuations == 1 ? 0xC0 : continuations == 2 ? 0xE0 : 0xF0;
  append(mark | (value >> (6 * continuations)));
  for (int i = continuations - 1; i >= 0; --i) append(0x80 | ((value >> (6 * i)) & 0x3F));
}

std::string name_of_code_point(char32_t value) {
  const std::string number = fmt::format("U+{:04X}", static_cast<std::uint32_t>(value));
  if (!is_visible(value)) return number;
  std::string character;
  append_code_point(character, value);
  return fmt::format("\"{}\" ({})", character, number);
}

}  // namespace handgrad::data
