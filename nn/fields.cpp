#include "handgrad/nn/fields.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "handgrad/nn/json_text.h"
#include "handgrad/nn/near_match.h"

namespace handgrad::nn {

using nlohmann::json;

/// What all handles of one config share.
struct Fields::Document {
  json root;
  Source source;
  Purpose purpose;
  std::vector<Key> keys;
  std::map<std::string, std::vector<std::string>> known;  // by the object's pointer: its keys that were read

  /// Where the value at `pointer` was written: the override of it or of what it is a part of, else the file.
  const std::string& origin(std::string pointer) const {
    for (;;) {
      const auto found = source.overrides.find(pointer);
      if (found != source.overrides.end()) return found->second;
      if (pointer.empty()) return source.file;
      pointer.resize(pointer.rfind('/'));
    }
  }
  [[noreturn]] void refuse(const std::string& pointer, std::string rule) const {
    throw ConfigError(origin(pointer), pointer, std::move(rule));
  }
  void finish(const json& object, const std::string& pointer) const;
};

namespace {

const json& empty_object() {
  static const json empty = json::object();
  return empty;
}

const char* name_of(Key::Type type) {
  switch (type) {
    case Key::Type::integer:
      return "an integer";
    case Key::Type::number:
      return "a number";
    case Key::Type::boolean:
      return "true or false";
    case Key::Type::text:
      return "a text";
    case Key::Type::numbers:
      return "a list of numbers";
    case Key::Type::texts:
      return "a list of texts";
    case Key::Type::object:
      return "an object";
  }
  return "";
}

/// A value as a message shows it.
std::string shown(const json& value) {
  if (value.is_string()) return "the text " + value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (value.is_array()) return "the list " + value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (value.is_object()) return "an object";
  return value.dump();
}

// ---- Ranges

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : " and ") + part;
  return text;
}

template <class Rule>  // NumberKey or NumbersKey
std::string range_of(const Rule& rule) {
  std::vector<std::string> parts;
  if (rule.at_least) parts.push_back(fmt::format("at least {}", *rule.at_least));
  if (rule.more_than) parts.push_back(fmt::format("more than {}", *rule.more_than));
  if (rule.at_most) parts.push_back(fmt::format("at most {}", *rule.at_most));
  if (rule.less_than) parts.push_back(fmt::format("less than {}", *rule.less_than));
  return joined(parts);
}

template <class Rule>
bool in_range(double value, const Rule& rule) {
  return std::isfinite(value) && !(rule.at_least && value < *rule.at_least) &&
         !(rule.more_than && value <= *rule.more_than) && !(rule.at_most && value > *rule.at_most) &&
         !(rule.less_than && value >= *rule.less_than);
}

bool has_least(const IntegerKey& rule) { return rule.at_least != std::numeric_limits<std::int64_t>::min(); }
bool has_most(const IntegerKey& rule) { return rule.at_most != std::numeric_limits<std::int64_t>::max(); }

std::string range_of(const IntegerKey& rule) {
  std::vector<std::string> parts;
  if (has_least(rule)) parts.push_back(fmt::format("at least {}", rule.at_least));
  if (has_most(rule)) parts.push_back(fmt::format("at most {}", rule.at_most));
  return joined(parts);
}

template <class Rule>
void note_range(Key& note, const Rule& rule) {
  note.range = range_of(rule);
  note.at_least = rule.at_least;
  note.more_than = rule.more_than;
  note.at_most = rule.at_most;
  note.less_than = rule.less_than;
}

/// Some allowed number, for a key without default while there is no config.
template <class Rule>
double some_number(const Rule& rule) {
  for (const std::optional<double>& value : {std::optional<double>(1), rule.at_least, rule.at_most})
    if (value && in_range(*value, rule)) return *value;
  return rule.more_than.value_or(0) / 2 + rule.less_than.value_or(1) / 2;
}

// ---- Values. `refuse` takes the broken rule.

template <class Refuse>
std::int64_t integer_of(const json& value, const IntegerKey& rule, const Refuse& refuse) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: up to here every whole number is a double of its own
  std::int64_t number = 0;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    refuse("must be an integer up to 9223372036854775807, got " + shown(value));
  if (value.is_number_integer()) {
    number = value.get<std::int64_t>();
  } else {
    const double fraction = value.is_number_float() ? value.get<double>() : std::nan("");
    if (!(std::abs(fraction) <= kExact) || fraction != std::floor(fraction))
      refuse("must be an integer, got " + shown(value));
    number = static_cast<std::int64_t>(fraction);
  }
  const std::string divides = rule.divides.name == nullptr
                                  ? ""
                                  : fmt::format("divide {} = {}", rule.divides.name, rule.divides.value);
  if (number < rule.at_least)
    refuse(fmt::format("must be at least {}{}{}, got {}", rule.at_least, divides.empty() ? "" : " and ",
                       divides, number));
  if (number > rule.at_most) refuse(fmt::format("must be at most {}, got {}", rule.at_most, number));
  if (!divides.empty() && (number == 0 || rule.divides.value % number != 0))
    refuse("must " + divides + fmt::format(", got {}", number));
  return number;
}

template <class Rule, class Refuse>
double number_of(const json& value, const Rule& rule, const Refuse& refuse) {
  if (!value.is_number()) refuse("must be a number, got " + shown(value));
  const double number = value.get<double>();
  if (!std::isfinite(number)) refuse("must be a finite number, got " + fmt::format("{}", number));
  if (!in_range(number, rule)) refuse("must be " + range_of(rule) + ", got " + shown(value));
  return number;
}

template <class Refuse>
std::string text_of(const json& value, const TextKey& rule, const Refuse& refuse) {
  if (!value.is_string()) refuse("must be a text, got " + shown(value));
  auto text = value.get<std::string>();
  const auto& choices = rule.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end())
    refuse(fmt::format("unknown {} \"{}\"{}", rule.what, text, did_you_mean(text, choices)));
  return text;
}

}  // namespace

// ---- Handles

Fields::Fields(const json& root, Source source, Purpose purpose)
    : Fields(std::make_shared<Document>(Document{root, std::move(source), purpose, {}, {}}), nullptr, "",
             "") {
  object_ = &document_->root;
  if (!object_->is_object()) throw ConfigError(file(), "", "a config must be an object, got " + shown(root));
}

Fields::Fields(std::shared_ptr<Document> document, const json* object, std::string pointer, std::string of)
    : document_(std::move(document)), object_(object), pointer_(std::move(pointer)), of_(std::move(of)) {}

Fields Fields::describing(std::string pointer) {
  return {std::make_shared<Document>(Document{json::object(), {}, Purpose::describe, {}, {}}),
          &empty_object(), std::move(pointer), ""};
}

Fields Fields::described_for(std::string of) const { return {document_, object_, pointer_, std::move(of)}; }

const std::string& Fields::file() const { return document_->source.file; }
Purpose Fields::purpose() const { return document_->purpose; }
bool Fields::has(std::string_view key) const { return object_->contains(key); }
std::string Fields::pointer_to(std::string_view key) const { return pointer_ + "/" + pointer_token(key); }
std::string Fields::origin(std::string_view key) const {
  return has(key) ? document_->origin(pointer_to(key)) : std::string();
}
const std::vector<Key>& Fields::keys() const { return document_->keys; }
void Fields::refuse(std::string_view key, std::string rule) const {
  document_->refuse(pointer_to(key), std::move(rule));
}

nlohmann::ordered_json Fields::effective() const {
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  for (const Key& key : document_->keys)
    if (!key.value.empty())
      config[nlohmann::ordered_json::json_pointer(key.pointer)] = nlohmann::ordered_json::parse(key.value);
  return config;
}

void Fields::finish() const { document_->finish(*object_, pointer_); }

void Fields::Document::finish(const json& object, const std::string& pointer) const {
  const auto read = known.find(pointer);
  const std::vector<std::string> keys_read = read == known.end() ? std::vector<std::string>() : read->second;
  for (const auto& [key, value] : object.items()) {
    const std::string place = pointer + "/" + pointer_token(key);
    if (std::find(keys_read.begin(), keys_read.end(), key) == keys_read.end())
      refuse(place, "unknown key" + did_you_mean(key, keys_read));
    if (value.is_object()) finish(value, place);
  }
}

// ---- Reading

const json* Fields::find(std::string_view key, Key note, Presence presence) {
  const auto found = object_->find(key);
  const json* const value = found == object_->end() ? nullptr : &*found;
  note.pointer = pointer_to(key);
  note.of = of_;
  note.required = presence == Presence::required;
  note.origin = origin(key);
  if (note.type != Key::Type::object) note.value = value != nullptr ? value->dump() : note.fallback;

  auto& known = document_->known[pointer_];
  if (std::find(known.begin(), known.end(), key) == known.end()) known.emplace_back(key);
  if (value == nullptr && presence == Presence::required && !describing_only())
    document_->refuse(note.pointer, fmt::format("must be given: {}{}{}", name_of(note.type),
                                                note.range.empty() ? "" : ", ", note.range));
  const auto same = [&](const Key& other) { return other.pointer == note.pointer && other.of == note.of; };
  if (std::none_of(document_->keys.begin(), document_->keys.end(), same))
    document_->keys.push_back(std::move(note));
  return value;
}

std::optional<std::int64_t> Fields::read(std::string_view key, const IntegerKey& rule, Presence presence) {
  Key note{.type = Key::Type::integer, .doc = rule.doc, .range = range_of(rule)};
  if (has_least(rule)) note.at_least = static_cast<double>(rule.at_least);
  if (has_most(rule)) note.at_most = static_cast<double>(rule.at_most);
  if (rule.divides.name != nullptr)
    note.range += fmt::format("{}divides {}", note.range.empty() ? "" : ", ", rule.divides.name);
  if (rule.fallback) note.fallback = std::to_string(*rule.fallback);
  const json* const value = find(key, std::move(note), presence);
  if (value == nullptr) return rule.fallback;
  return integer_of(*value, rule, [&](std::string broken) { refuse(key, std::move(broken)); });
}

std::optional<double> Fields::read(std::string_view key, const NumberKey& rule, Presence presence) {
  Key note{.type = Key::Type::number, .doc = rule.doc};
  note_range(note, rule);
  if (rule.fallback) note.fallback = json(*rule.fallback).dump();
  const json* const value = find(key, std::move(note), presence);
  if (value == nullptr) return rule.fallback;
  return number_of(*value, rule, [&](std::string broken) { refuse(key, std::move(broken)); });
}

std::optional<std::string> Fields::read(std::string_view key, const TextKey& rule, Presence presence) {
  Key note{.type = Key::Type::text, .doc = rule.doc, .choices = rule.choices};
  if (rule.fallback) note.fallback = json(*rule.fallback).dump();
  const json* const value = find(key, std::move(note), presence);
  if (value == nullptr) return rule.fallback;
  return text_of(*value, rule, [&](std::string broken) { refuse(key, std::move(broken)); });
}

std::int64_t Fields::integer(std::string_view key, const IntegerKey& rule) {
  const auto value = read(key, rule, rule.fallback ? Presence::defaulted : Presence::required);
  return value ? *value : std::clamp<std::int64_t>(1, rule.at_least, rule.at_most);
}

double Fields::number(std::string_view key, const NumberKey& rule) {
  const auto value = read(key, rule, rule.fallback ? Presence::defaulted : Presence::required);
  return value ? *value : some_number(rule);
}

std::string Fields::text(std::string_view key, const TextKey& rule) {
  const auto value = read(key, rule, rule.fallback ? Presence::defaulted : Presence::required);
  return value ? *value : rule.choices.empty() ? "" : rule.choices.front();
}

std::optional<std::int64_t> Fields::optional_integer(std::string_view key, const IntegerKey& rule) {
  return read(key, rule, Presence::optional);
}
std::optional<double> Fields::optional_number(std::string_view key, const NumberKey& rule) {
  return read(key, rule, Presence::optional);
}
std::optional<std::string> Fields::optional_text(std::string_view key, const TextKey& rule) {
  return read(key, rule, Presence::optional);
}

bool Fields::boolean(std::string_view key, const BooleanKey& rule) {
  Key note{.type = Key::Type::boolean, .doc = rule.doc};
  if (rule.fallback) note.fallback = *rule.fallback ? "true" : "false";
  const json* const value =
      find(key, std::move(note), rule.fallback ? Presence::defaulted : Presence::required);
  if (value == nullptr) return rule.fallback.value_or(false);
  if (!value->is_boolean()) refuse(key, "must be true or false, got " + shown(*value));
  return value->get<bool>();
}

std::vector<double> Fields::numbers(std::string_view key, const NumbersKey& rule) {
  Key note{.type = Key::Type::numbers, .doc = rule.doc, .size = rule.size};
  note_range(note, rule);
  if (rule.fallback) note.fallback = json(*rule.fallback).dump();
  const json* const value =
      find(key, std::move(note), rule.fallback ? Presence::defaulted : Presence::required);
  if (value == nullptr)
    return rule.fallback ? *rule.fallback : std::vector<double>(rule.size.value_or(1), some_number(rule));
  if (!value->is_array()) refuse(key, "must be a list of numbers, got " + shown(*value));
  if (rule.size && value->size() != *rule.size)
    refuse(key, fmt::format("must have {} numbers, got {}", *rule.size, value->size()));
  std::vector<double> list;
  for (std::size_t i = 0; i < value->size(); ++i)
    list.push_back(number_of((*value)[i], rule, [&](std::string broken) {
      document_->refuse(fmt::format("{}/{}", pointer_to(key), i), std::move(broken));
    }));
  return list;
}

std::vector<std::string> Fields::texts(std::string_view key, const TextsKey& rule) {
  Key note{.type = Key::Type::texts, .doc = rule.doc};
  if (rule.fallback) note.fallback = json(*rule.fallback).dump();
  const json* const value =
      find(key, std::move(note), rule.fallback ? Presence::defaulted : Presence::required);
  if (value == nullptr) return rule.fallback.value_or(std::vector<std::string>());
  if (!value->is_array()) refuse(key, "must be a list of texts, got " + shown(*value));
  std::vector<std::string> list;
  for (std::size_t i = 0; i < value->size(); ++i)
    list.push_back(text_of((*value)[i], {}, [&](std::string broken) {
      document_->refuse(fmt::format("{}/{}", pointer_to(key), i), std::move(broken));
    }));
  return list;
}

Fields Fields::object(std::string_view key, const char* doc) {
  const json* const value = find(key, {.type = Key::Type::object, .doc = doc}, Presence::defaulted);
  if (value != nullptr && !value->is_object()) refuse(key, "must be an object, got " + shown(*value));
  return {document_, value != nullptr ? value : &empty_object(), pointer_to(key), of_};
}

}  // namespace handgrad::nn
