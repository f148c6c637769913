// UTF-8, strictly: the shortest form only, no surrogates, nothing above U+10FFFF (Unicode 15, table 3-7).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace handgrad::data {

/// What stands at one place of a text: a code point and its length in bytes, or what is wrong there.
struct CodePoint {
  char32_t value = 0;             ///< U+0000 to U+10FFFF
  int length = 0;                 ///< bytes, 1 to 4; 0 when the bytes are not UTF-8
  const char* problem = nullptr;  ///< null when all is well

  bool cut_off = false;  ///< the text ends within this character: more bytes may make it valid

  bool valid() const { return problem == nullptr; }  ///< whether a code point stands there
};

/// The code point that begins at byte `offset` (which must be less than the size of `text`). Never throws.
CodePoint read_code_point(std::string_view text, std::size_t offset);

/// Appends `value` in UTF-8. `value` is at most 0x10FFFF and no surrogate.
void append_code_point(std::string& text, char32_t value);

/// For messages: `"z" (U+007A)`, or only `U+0007` where nothing would be seen.
std::string name_of_code_point(char32_t value);

}  // namespace handgrad::data
