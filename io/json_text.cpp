#include "handgrad/io/json_text.h"

#include <set>
#include <vector>

#include <nlohmann/json.hpp>

namespace handgrad::io {
namespace {

using nlohmann::json;

/// Rejects duplicate keys, which the parser itself accepts.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(const std::string& file) : file_(file) {}

  bool operator()(int /*depth*/, json::parse_event_t event, json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        next_element();
        open_.push_back({event == json::parse_event_t::array_start, {}, {}, -1});
        break;
      case json::parse_event_t::key:
        enter(parsed.get<std::string>());
        break;
      case json::parse_event_t::value:
        next_element();
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        open_.pop_back();
        break;
    }
    return true;
  }

 private:
  struct Level {
    bool is_array;
    std::set<std::string> keys;
    std::string key;  // that is being read
    int index;        // in an array
  };

  void next_element() {
    if (!open_.empty()) ++open_.back().index;
  }
  void enter(std::string key) {
    Level& level = open_.back();
    level.key = std::move(key);
    if (!level.keys.insert(level.key).second) throw ConfigError(file_, pointer(), "duplicate key");
  }
  std::string pointer() const {
    std::string text;
    for (const Level& level : open_)
      text += "/" + (level.is_array ? std::to_string(level.index) : pointer_token(level.key));
    return text;
  }

  const std::string& file_;
  std::vector<Level> open_;
};

/// The parser's message without its error id: "line 3, column 17: unexpected ','; expected ...".
std::string reason(std::string text) {
  const auto after = [&](std::string_view mark) {
    const auto at = text.find(mark);
    return at == std::string::npos ? std::string_view(text) : std::string_view(text).substr(at + mark.size());
  };
  const std::string_view place = after("parse error at ");
  const std::string_view what = after(" - ");
  return std::string(place.substr(0, place.find(": ") + 2)) + std::string(what);
}

}  // namespace

std::string without_id(std::string_view message) {
  const std::size_t end_of_id = message.find("] ");
  return std::string(end_of_id == message.npos ? message : message.substr(end_of_id + 2));
}

std::string pointer_token(std::string_view key) {
  std::string text;
  for (char c : key) text += c == '~' ? std::string("~0") : c == '/' ? std::string("~1") : std::string(1, c);
  return text;
}

json parse_json(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw ConfigError(file, "", "expected JSON, got an empty text");
  try {
    return json::parse(text, DuplicateKeys(file), /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const json::out_of_range& error) {  // names the number between quotes
    const std::string what = error.what();
    const auto quote = what.find('\'');
    throw ConfigError(file, "",
                      "a number must not exceed the largest double, got " +
                          what.substr(quote + 1, what.rfind('\'') - quote - 1));
  } catch (const json::exception& error) {
    throw ConfigError(file, "", reason(error.what()));
  }
}

}  // namespace handgrad::io
