// What a config's keys may be: the rules that Fields reads by, what it notes of each key, and which values keep a rule.
// Programs use Fields.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace handgrad::io {

/// A number that a count must divide: `{"emb_dim", 100}`.
struct Dividend {
  const char* name = nullptr;  ///< nullptr: nothing must be divided
  std::int64_t value = 0;      ///< what must be divided
};

/// What a key may be. Without `fallback` it is required.
struct IntegerKey {
  const char* doc = "";                       ///< one sentence for the reference
  std::optional<std::int64_t> fallback = {};  ///< the default
  /// @{ The range, both ends in it.
  std::int64_t at_least = std::numeric_limits<std::int64_t>::min();
  std::int64_t at_most = std::numeric_limits<std::int64_t>::max();
  /// @}
  Dividend divides = {};             ///< what the number must divide, as n_heads divides emb_dim
  const char* instead_of = nullptr;  ///< a key read before this one: exactly one of the two must be given
};
/// Only finite numbers are numbers.
struct NumberKey {
  const char* doc = "";                 ///< one sentence for the reference
  std::optional<double> fallback = {};  ///< the default
  /// @{ The range: ends that are in it, ends that are not.
  std::optional<double> at_least = {}, more_than = {}, at_most = {}, less_than = {};
  /// @}
};
/// true or false, nothing that only looks like it.
struct BooleanKey {
  const char* doc = "";               ///< one sentence for the reference
  std::optional<bool> fallback = {};  ///< the default
};
/// A text, any or one of several.
struct StringKey {
  const char* doc = "";                       ///< one sentence for the reference
  std::optional<std::string> fallback = {};   ///< the default
  std::vector<std::string> choices = {};      ///< none: any text
  const char* what = "value";                 ///< what a choice is called when it is unknown: "norm"
  std::vector<std::string> choice_docs = {};  ///< one sentence for each choice, or none at all
};
/// A list, in which each number is as in NumberKey.
struct NumbersKey {
  const char* doc = "";                              ///< one sentence for the reference
  std::optional<std::vector<double>> fallback = {};  ///< the default
  std::optional<std::size_t> size = {};              ///< how many there must be; none: any number
  /// @{ The range of each: ends that are in it, ends that are not.
  std::optional<double> at_least = {}, more_than = {}, at_most = {}, less_than = {};
  /// @}
};
/// A list of texts.
struct StringsKey {
  const char* doc = "";                                   ///< one sentence for the reference
  std::optional<std::vector<std::string>> fallback = {};  ///< the default
};

/// A key that was read, in every detail: the one list that loader, schema and reference page come from.
struct Key {
  /// The types a value may have; an object contains more keys.
  enum class Type { integer, number, boolean, string, numbers, strings, object };

  std::string pointer = {};  ///< "/model/norm/eps"
  std::string of = {};       ///< of which type it is a key, "layer_norm", where only some have it; else empty
  Type type = Type::string;  ///< of the value
  std::string doc = {};      ///< one sentence
  bool required = false;     ///< whether a config without it is an error
  std::string fallback = {};  ///< default as JSON text; empty when there is none
  std::string range = {};     ///< "at least 0 and less than 1"; empty when every value is allowed
  /// @{ The same range in numbers.
  std::optional<double> at_least = {}, more_than = {}, at_most = {}, less_than = {};
  /// @}
  std::optional<std::size_t> size = {};       ///< how long a list must be; none: as long as one likes
  std::vector<std::string> choices = {};      ///< the texts that are allowed; none: any
  std::vector<std::string> choice_docs = {};  ///< one sentence for each choice, or none at all
  std::string what = {};                      ///< what one of the choices is called: "norm"
  std::string instead_of = {};                ///< the key that this one replaces
  std::string value = {};                     ///< in force, as JSON text; empty when there is none
  std::string origin = {};                    ///< where it was written; empty: nowhere, it is the default
};

/// What a value does wrong: the rule and what came instead, and where, "/1" for the second element of a list.
struct Broken {
  std::string rule;     ///< what it must, and what came instead
  std::string at = {};  ///< below the key's pointer; empty: the value itself
};

/// @{ Takes `value` over into `out` if it keeps the rule; else says what it broke.
std::optional<Broken> convert(const nlohmann::json& value, const IntegerKey& rule, std::int64_t& out);
std::optional<Broken> convert(const nlohmann::json& value, const NumberKey& rule, double& out);
std::optional<Broken> convert(const nlohmann::json& value, const BooleanKey& rule, bool& out);
std::optional<Broken> convert(const nlohmann::json& value, const StringKey& rule, std::string& out);
std::optional<Broken> convert(const nlohmann::json& value, const NumbersKey& rule, std::vector<double>& out);
std::optional<Broken> convert(const nlohmann::json& value, const StringsKey& rule,
                              std::vector<std::string>& out);
/// @}

/// @{ What is noted of a key before anything is known of its value, without its default.
Key note_of(const IntegerKey& rule);
Key note_of(const NumberKey& rule);
Key note_of(const BooleanKey& rule);
Key note_of(const StringKey& rule);
Key note_of(const NumbersKey& rule);
Key note_of(const StringsKey& rule);
/// @}

/// @{ Some value that keeps the rule, for a required key while there is no config.
std::int64_t some_value(const IntegerKey& rule);
double some_value(const NumberKey& rule);
bool some_value(const BooleanKey& rule);
std::string some_value(const StringKey& rule);
std::vector<double> some_value(const NumbersKey& rule);
std::vector<std::string> some_value(const StringsKey& rule);
/// @}

/// "an integer", "a list of numbers"
const char* name_of(Key::Type type);
/// A value as a message shows it: `the text "2"`, `null`, `an object`.
std::string shown(const nlohmann::json& value);

}  // namespace handgrad::io
