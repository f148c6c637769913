// The values behind Fields: what each kind of rule accepts, and how it is described. Fields is what programs use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/io/field_keys.h"

namespace handgrad::io {

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

/// @{ What is noted of a key before anything is known of its value.
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
