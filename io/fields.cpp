#include "handgrad/io/fields.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "handgrad/io/field_keys.h"
#include "handgrad/io/json_text.h"
#include "handgrad/io/near_match.h"

namespace handgrad::io {

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
  /// The origin of an unknown key: an override of a key below it may have created it.
  const std::string& origin_of_unknown(const std::string& pointer) const {
    const auto below = source.overrides.lower_bound(pointer + "/");
    return below != source.overrides.end() && below->first.starts_with(pointer + "/") ? below->second
                                                                                      : origin(pointer);
  }
  [[noreturn]] void throw_error(const std::string& pointer, std::string rule) const {
    throw ConfigError(origin(pointer), pointer, std::move(rule));
  }
  bool is_section(const std::string& key) const;
  void finish(const json& object, const std::string& pointer) const;
  std::string left_from_other_type(const std::string& pointer, const std::string& place) const;
};

namespace {

const json& empty_object() {
  static const json empty = json::object();
  return empty;
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
void Fields::throw_error(std::string_view key, std::string rule) const {
  document_->throw_error(pointer_to(key), std::move(rule));
}

nlohmann::ordered_json Fields::effective() const {
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  for (const Key& key : document_->keys)
    if (!key.value.empty())
      config[nlohmann::ordered_json::json_pointer(key.pointer)] = nlohmann::ordered_json::parse(key.value);
  return config;
}

void Fields::finish() const { document_->finish(*object_, pointer_); }

/// `--set model.norm.type=none` leaves the file's eps where it is: how to get rid of it, else nothing.
std::string Fields::Document::left_from_other_type(const std::string& pointer,
                                                   const std::string& place) const {
  const auto type = source.overrides.find(pointer + "/type");
  if (type == source.overrides.end() || origin(place) != source.file) return "";
  std::string key = pointer.substr(1);
  std::replace(key.begin(), key.end(), '/', '.');
  return fmt::format(
      "; the file's other keys stay unless the whole object is set: `set` '{}={{\"type\": {}}}'", key,
      root[json::json_pointer(pointer + "/type")].dump());
}

/// Whether a config has an object of this name at its top.
bool Fields::Document::is_section(const std::string& key) const {
  return std::any_of(keys.begin(), keys.end(), [&](const Key& known_key) {
    return known_key.type == Key::Type::object && known_key.pointer == "/" + pointer_token(key);
  });
}

void Fields::Document::finish(const json& object, const std::string& pointer) const {
  const auto read = known.find(pointer);
  const std::vector<std::string> keys_read = read == known.end() ? std::vector<std::string>() : read->second;
  for (const auto& [key, value] : object.items()) {
    const std::string place = pointer + "/" + pointer_token(key);
    if (std::find(keys_read.begin(), keys_read.end(), key) == keys_read.end())
      throw ConfigError(
          origin_of_unknown(place), place,
          "unknown key" + (pointer.empty() || !is_section(key)
                               ? did_you_mean(key, keys_read) + left_from_other_type(pointer, place)
                               : fmt::format("; /{} stands for itself, beside {}", key, pointer)));
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
    document_->throw_error(note.pointer, fmt::format("must be given: {}{}{}", name_of(note.type),
                                                     note.range.empty() ? "" : ", ", note.range));
  if (!note.instead_of.empty() && !describing_only()) {
    if (value != nullptr && has(note.instead_of))
      throw_error(key, fmt::format("replaces {}; give one of them", note.instead_of));
    if (value == nullptr && !has(note.instead_of))
      throw_error(note.instead_of, fmt::format("must be given, or {} in its place", key));
  }
  const auto same = [&](const Key& other) { return other.pointer == note.pointer && other.of == note.of; };
  if (std::none_of(document_->keys.begin(), document_->keys.end(), same))
    document_->keys.push_back(std::move(note));
  return value;
}

template <class T, class Rule>
std::optional<T> Fields::read(std::string_view key, const Rule& rule, Presence presence) {
  Key note = note_of(rule);
  if (rule.fallback) note.fallback = json(*rule.fallback).dump();
  const json* const value = find(key, std::move(note), presence);
  if (value == nullptr) return rule.fallback;
  T read{};
  if (const auto broken = convert(*value, rule, read))
    document_->throw_error(pointer_to(key) + broken->at, broken->rule);
  return read;
}

template <class T, class Rule>
T Fields::read(std::string_view key, const Rule& rule) {
  auto value = read<T>(key, rule, rule.fallback ? Presence::defaulted : Presence::required);
  return value ? *std::move(value) : some_value(rule);
}

std::int64_t Fields::integer(std::string_view key, const IntegerKey& rule) {
  return read<std::int64_t>(key, rule);
}
double Fields::number(std::string_view key, const NumberKey& rule) { return read<double>(key, rule); }
bool Fields::boolean(std::string_view key, const BooleanKey& rule) { return read<bool>(key, rule); }
std::string Fields::string(std::string_view key, const StringKey& rule) {
  return read<std::string>(key, rule);
}
std::vector<double> Fields::numbers(std::string_view key, const NumbersKey& rule) {
  return read<std::vector<double>>(key, rule);
}
std::vector<std::string> Fields::strings(std::string_view key, const StringsKey& rule) {
  return read<std::vector<std::string>>(key, rule);
}
std::optional<std::int64_t> Fields::optional_integer(std::string_view key, const IntegerKey& rule) {
  return read<std::int64_t>(key, rule, Presence::optional);
}
std::optional<std::string> Fields::optional_string(std::string_view key, const StringKey& rule) {
  return read<std::string>(key, rule, Presence::optional);
}

Fields Fields::object(std::string_view key, const char* doc) {
  const json* const value = find(key, {.type = Key::Type::object, .doc = doc}, Presence::defaulted);
  if (value != nullptr && !value->is_object()) throw_error(key, "must be an object, got " + shown(*value));
  return {document_, value != nullptr ? value : &empty_object(), pointer_to(key), of_};
}

std::string dotted(const std::string& pointer) {
  std::string text = pointer.substr(std::min<std::size_t>(pointer.size(), 1));
  std::replace(text.begin(), text.end(), '/', '.');
  return text;
}

}  // namespace handgrad::io
