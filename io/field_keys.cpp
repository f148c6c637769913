#include "handgrad/io/field_keys.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "handgrad/io/near_match.h"

namespace handgrad::io {

using nlohmann::json;

const char* name_of(Key::Type type) {
  constexpr const char* kNames[] = {"an integer",        "a number",        "true or false", "a text",
                                    "a list of numbers", "a list of texts", "an object"};
  return kNames[static_cast<int>(type)];
}

std::string shown(const json& value) {
  const auto dump = [&] { return value.dump(-1, ' ', false, json::error_handler_t::replace); };
  if (value.is_string()) return "the text " + dump();
  if (value.is_array()) return "the list " + dump();
  if (value.is_object()) return "an object";
  return dump();
}

namespace {

Broken wrong_type(Key::Type type, const json& value) {
  return {fmt::format("must be {}, got {}", name_of(type), shown(value))};
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

template <class Rule>
Key number_note(const Rule& rule, Key::Type type) {
  Key note{.type = type, .doc = rule.doc, .range = range_of(rule)};
  note.at_least = rule.at_least;
  note.more_than = rule.more_than;
  note.at_most = rule.at_most;
  note.less_than = rule.less_than;
  return note;
}

template <class Rule>
double some_number(const Rule& rule) {
  for (const std::optional<double>& value : {std::optional<double>(1), rule.at_least, rule.at_most})
    if (value && in_range(*value, rule)) return *value;
  return rule.more_than.value_or(0) / 2 + rule.less_than.value_or(1) / 2;
}

template <class Rule>
std::optional<Broken> convert_number(const json& value, const Rule& rule, double& out) {
  if (!value.is_number()) return wrong_type(Key::Type::number, value);
  out = value.get<double>();
  if (!std::isfinite(out)) return Broken{fmt::format("must be a finite number, got {}", out)};
  if (!in_range(out, rule)) return Broken{fmt::format("must be {}, got {}", range_of(rule), shown(value))};
  return std::nullopt;
}

template <class T, class Convert>
std::optional<Broken> convert_each(const json& list, std::vector<T>& out, const Convert& convert_one) {
  out.resize(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    if (auto broken = convert_one(list[i], out[i])) return Broken{broken->rule, fmt::format("/{}", i)};
  return std::nullopt;
}

bool has_least(const IntegerKey& rule) { return rule.at_least != std::numeric_limits<std::int64_t>::min(); }
bool has_most(const IntegerKey& rule) { return rule.at_most != std::numeric_limits<std::int64_t>::max(); }

std::optional<Broken> convert_whole(const json& value, std::int64_t& out) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: every whole number up to here has an exact double
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    return Broken{"must be an integer up to 9223372036854775807, got " + shown(value)};
  if (value.is_number_integer()) {
    out = value.get<std::int64_t>();
    return std::nullopt;
  }
  const double number = value.is_number_float() ? value.get<double>() : std::nan("");
  if (!(number == std::floor(number))) return wrong_type(Key::Type::integer, value);
  if (!(std::abs(number) <= kExact))
    return Broken{"must be an integer, above 2^53 with all its digits, got " + shown(value)};
  out = static_cast<std::int64_t>(number);
  return std::nullopt;
}

}  // namespace

// ---- Integers

std::optional<Broken> convert(const json& value, const IntegerKey& rule, std::int64_t& out) {
  if (auto broken = convert_whole(value, out)) return broken;
  const bool must_divide = rule.divides.name != nullptr;
  const std::string divide =
      must_divide ? fmt::format("divide {} = {}", rule.divides.name, rule.divides.value) : std::string();
  if (out < rule.at_least)
    return Broken{fmt::format("must be at least {}{}{}, got {}", rule.at_least, must_divide ? " and " : "",
                              divide, out)};
  if (out > rule.at_most) return Broken{fmt::format("must be at most {}, got {}", rule.at_most, out)};
  if (must_divide && (out == 0 || rule.divides.value % out != 0))
    return Broken{fmt::format("must {}, got {}", divide, out)};
  return std::nullopt;
}

Key note_of(const IntegerKey& rule) {
  std::vector<std::string> range;
  if (has_least(rule)) range.push_back(fmt::format("at least {}", rule.at_least));
  if (has_most(rule)) range.push_back(fmt::format("at most {}", rule.at_most));
  Key note{.type = Key::Type::integer, .doc = rule.doc, .range = joined(range)};
  if (rule.divides.name != nullptr)
    note.range += fmt::format("{}divides {}", note.range.empty() ? "" : ", ", rule.divides.name);
  if (has_least(rule)) note.at_least = static_cast<double>(rule.at_least);
  if (has_most(rule)) note.at_most = static_cast<double>(rule.at_most);
  if (rule.instead_of != nullptr) note.instead_of = rule.instead_of;
  return note;
}

std::int64_t some_value(const IntegerKey& rule) {
  return std::clamp<std::int64_t>(1, rule.at_least, rule.at_most);
}

// ---- Numbers

std::optional<Broken> convert(const json& value, const NumberKey& rule, double& out) {
  return convert_number(value, rule, out);
}

Key note_of(const NumberKey& rule) { return number_note(rule, Key::Type::number); }

double some_value(const NumberKey& rule) { return some_number(rule); }

std::optional<Broken> convert(const json& value, const NumbersKey& rule, std::vector<double>& out) {
  if (!value.is_array()) return wrong_type(Key::Type::numbers, value);
  if (rule.size && value.size() != *rule.size)
    return Broken{fmt::format("must have {} numbers, got {}", *rule.size, value.size())};
  return convert_each(value, out,
                      [&](const json& number, double& to) { return convert_number(number, rule, to); });
}

Key note_of(const NumbersKey& rule) {
  Key note = number_note(rule, Key::Type::numbers);
  note.size = rule.size;
  return note;
}

std::vector<double> some_value(const NumbersKey& rule) {
  return std::vector<double>(rule.size.value_or(1), some_number(rule));
}

// ---- Booleans and texts

std::optional<Broken> convert(const json& value, const BooleanKey& /*rule*/, bool& out) {
  if (!value.is_boolean()) return wrong_type(Key::Type::boolean, value);
  out = value.get<bool>();
  return std::nullopt;
}

Key note_of(const BooleanKey& rule) { return {.type = Key::Type::boolean, .doc = rule.doc}; }

bool some_value(const BooleanKey& /*rule*/) { return false; }

std::optional<Broken> convert(const json& value, const StringKey& rule, std::string& out) {
  if (!value.is_string()) return wrong_type(Key::Type::string, value);
  out = value.get<std::string>();
  if (!rule.choices.empty() && std::find(rule.choices.begin(), rule.choices.end(), out) == rule.choices.end())
    return Broken{fmt::format("unknown {} \"{}\"{}", rule.what, out, did_you_mean(out, rule.choices))};
  return std::nullopt;
}

Key note_of(const StringKey& rule) {
  return {.type = Key::Type::string,
          .doc = rule.doc,
          .choices = rule.choices,
          .choice_docs = rule.choice_docs,
          .what = rule.what};
}

std::string some_value(const StringKey& rule) { return rule.choices.empty() ? "" : rule.choices.front(); }

std::optional<Broken> convert(const json& value, const StringsKey& /*rule*/, std::vector<std::string>& out) {
  if (!value.is_array()) return wrong_type(Key::Type::strings, value);
  return convert_each(value, out,
                      [](const json& text, std::string& to) { return convert(text, StringKey{}, to); });
}

Key note_of(const StringsKey& rule) { return {.type = Key::Type::strings, .doc = rule.doc}; }

std::vector<std::string> some_value(const StringsKey& /*rule*/) { return {}; }

}  // namespace handgrad::io
