// The rules that Fields checks a config's values against, and its description of each key. Programs use Fields.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace handgrad::io {

/// A number that the value of a key must divide: `{"emb_dim", 100}`.
struct Dividend {
  const char* name = nullptr;  ///< nullptr: there is no such number
  std::int64_t value = 0;      ///< the number
};

/// An integer. Every key without a `fallback` is required.
struct IntegerKey {
  const char* doc = "";                       ///< one sentence for the reference
  std::optional<std::int64_t> fallback = {};  ///< the default
  /// @{ The range, both ends included.
  std::int64_t at_least = std::numeric_limits<std::int64_t>::min();
  std::int64_t at_most = std::numeric_limits<std::int64_t>::max();
  /// @}
  Dividend divides = {};             ///< what the number must divide, as n_heads divides emb_dim
  const char* instead_of = nullptr;  ///< a key read before this one: exactly one of the two must be given
};
/// A finite number.
struct NumberKey {
  const char* doc = "";                 ///< one sentence for the reference
  std::optional<double> fallback = {};  ///< the default
  /// @{ The range. `at_least` and `at_most` are included, `more_than` and `less_than` are not.
  std::optional<double> at_least = {}, more_than = {}, at_most = {}, less_than = {};
  /// @}
};
/// true or false; 0, 1 and "true" are rejected.
struct BooleanKey {
  const char* doc = "";               ///< one sentence for the reference
  std::optional<bool> fallback = {};  ///< the default
};
/// A string: any, or one of `choices`.
struct StringKey {
  const char* doc = "";                       ///< one sentence for the reference
  std::optional<std::string> fallback = {};   ///< the default
  std::vector<std::string> choices = {};      ///< none: any string
  const char* what = "value";                 ///< what an error calls a choice: "norm"
  std::vector<std::string> choice_docs = {};  ///< one sentence for each choice, or none at all
};
/// A list of finite numbers.
struct NumbersKey {
  const char* doc = "";                              ///< one sentence for the reference
  std::optional<std::vector<double>> fallback = {};  ///< the default
  std::optional<std::size_t> size = {};              ///< how many there must be; none: any number
  /// @{ The range of each number, as in NumberKey.
  std::optional<double> at_least = {}, more_than = {}, at_most = {}, less_than = {};
  /// @}
};
/// A list of strings.
struct StringsKey {
  const char* doc = "";                                   ///< one sentence for the reference
  std::optional<std::vector<std::string>> fallback = {};  ///< the default
};

/// Everything known about a key. The loader, the schema and the reference page are made from it.
struct Key {
  /// The types a value may have; an object contains more keys.
  enum class Type { integer, number, boolean, string, numbers, strings, object };

  std::string pointer = {};   ///< "/model/norm/eps"
  std::string of = {};        ///< the type that has it, "layer_norm"; empty when all types do
  Type type = Type::string;   ///< of the value
  std::string doc = {};       ///< one sentence
  bool required = false;      ///< whether a config without it is an error
  std::string fallback = {};  ///< default as JSON text; empty when there is none
  std::string range = {};     ///< "at least 0 and less than 1"; empty when every value is allowed
  /// @{ The same range in numbers.
  std::optional<double> at_least = {}, more_than = {}, at_most = {}, less_than = {};
  /// @}
  std::optional<std::size_t> size = {};       ///< how long a list must be; none: any length
  std::vector<std::string> choices = {};      ///< the strings that are allowed; none: any
  std::vector<std::string> choice_docs = {};  ///< one sentence for each choice, or none at all
  std::string what = {};                      ///< what an error calls a choice: "norm"
  std::string instead_of = {};                ///< the key that this one replaces
  std::string value = {};                     ///< the value in effect, as JSON text; empty when there is none
  std::string origin = {};                    ///< where it was written; empty for a default
};

/// How a value breaks its rule.
struct Broken {
  std::string rule;     ///< the rule and the value that breaks it
  std::string at = {};  ///< "/1" for the second element of a list; empty: the value itself
};

/// @{ Copies `value` to `out` if it satisfies the rule, or returns how it breaks the rule.
std::optional<Broken> convert(const nlohmann::json& value, const IntegerKey& rule, std::int64_t& out);
std::optional<Broken> convert(const nlohmann::json& value, const NumberKey& rule, double& out);
std::optional<Broken> convert(const nlohmann::json& value, const BooleanKey& rule, bool& out);
std::optional<Broken> convert(const nlohmann::json& value, const StringKey& rule, std::string& out);
std::optional<Broken> convert(const nlohmann::json& value, const NumbersKey& rule, std::vector<double>& out);
std::optional<Broken> convert(const nlohmann::json& value, const StringsKey& rule,
                              std::vector<std::string>& out);
/// @}

/// @{ A key's description, without its value and default.
Key note_of(const IntegerKey& rule);
Key note_of(const NumberKey& rule);
Key note_of(const BooleanKey& rule);
Key note_of(const StringKey& rule);
Key note_of(const NumbersKey& rule);
Key note_of(const StringsKey& rule);
/// @}

/// @{ A value that satisfies the rule, for a required key when there is no config.
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
