#include "handgrad/data/char_tokenizer.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/data/utf8.h"

namespace handgrad::data {
namespace {

constexpr const char* kSubject = "char tokenizer";
constexpr std::int32_t kNoToken = -1;

CodePoint checked_code_point(std::string_view text, std::size_t offset) {
  const CodePoint code_point = read_code_point(text, offset);
  if (code_point.valid()) return code_point;
  throw Error(kSubject,
              fmt::format("text must be UTF-8, but byte 0x{:02X} at byte offset {} {}",
                          static_cast<unsigned char>(text[offset]), offset, code_point.problem),
              {}, "save the text as UTF-8");
}

// Calls visit(code point, index in code points, offset in bytes) for all of `text`.
template <typename Visit>
void for_each_character(std::string_view text, Visit visit) {
  std::size_t index = 0;
  for (std::size_t offset = 0; offset < text.size(); ++index) {
    const CodePoint code_point = checked_code_point(text, offset);
    visit(code_point.value, index, offset);
    offset += static_cast<std::size_t>(code_point.length);
  }
}

}  // namespace

CharTokenizer::CharTokenizer(std::vector<char32_t> sorted) : characters_(std::move(sorted)) {
  ascii_ids_.fill(kNoToken);
  tokens_.resize(characters_.size());
  for (std::size_t id = 0; id < characters_.size(); ++id) {
    append_code_point(tokens_[id], characters_[id]);
    if (characters_[id] < ascii_ids_.size()) ascii_ids_[characters_[id]] = static_cast<std::int32_t>(id);
  }
}

CharTokenizer CharTokenizer::from_text(std::string_view text) {
  if (text.empty()) throw Error(kSubject, "needs at least one character, got an empty text");
  std::set<char32_t> characters;
  for_each_character(text,
                     [&](char32_t character, std::size_t, std::size_t) { characters.insert(character); });
  return CharTokenizer({characters.begin(), characters.end()});
}

CharTokenizer CharTokenizer::from_json(const nlohmann::json& json) {
  const auto found = json.is_object() ? json.find("characters") : json.end();
  if (found == json.end() || !found->is_string())
    throw Error(kSubject, "/characters: must be a string with every character of the vocabulary");
  const std::string& text = found->get_ref<const std::string&>();
  if (text.empty()) throw Error(kSubject, "/characters: must not be empty");
  std::vector<char32_t> characters;
  for_each_character(text, [&](char32_t character, std::size_t index, std::size_t) {
    if (!characters.empty() && character <= characters.back())
      throw Error(kSubject,
                  fmt::format("/characters: must be in the order of their numbers, each once, got {} "
                              "after {} at character {}",
                              name_of_code_point(character), name_of_code_point(characters.back()), index));
    characters.push_back(character);
  });
  return CharTokenizer(std::move(characters));
}

std::int32_t CharTokenizer::find(char32_t character) const {
  if (character < ascii_ids_.size()) return ascii_ids_[character];
  const auto found = std::lower_bound(characters_.begin(), characters_.end(), character);
  if (found == characters_.end() || *found != character) return kNoToken;
  return static_cast<std::int32_t>(found - characters_.begin());
}

std::vector<std::int32_t> CharTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  ids.reserve(text.size());
  for_each_character(text, [&](char32_t character, std::size_t index, std::size_t offset) {
    const std::int32_t id = find(character);
    if (id == kNoToken)
      throw Error(kSubject,
                  fmt::format("every character must be one of the {} it knows, got {} at character {}, "
                              "byte offset {}",
                              vocab_size(), name_of_code_point(character), index, offset));
    ids.push_back(id);
  });
  return ids;
}

std::string_view CharTokenizer::token(std::int32_t id) const {
  if (id < 0 || id >= vocab_size())
    throw Error(kSubject, fmt::format("an id must be from 0 to {}, got {}", vocab_size() - 1, id));
  return tokens_[static_cast<std::size_t>(id)];
}

nlohmann::json CharTokenizer::to_json() const {
  std::string characters;
  for (const std::string& token : tokens_) characters += token;
  return {{"type", "char"}, {"characters", characters}};
}

}  // namespace handgrad::data
