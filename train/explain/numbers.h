// Numbers as a sheet of arithmetic shows them, and as JSON holds them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/core/dtype.h"

namespace handgrad::train::explain {

inline constexpr int kDigits = 8;  ///< significant digits of a number, where nothing else is said

/// `value` with at most so many significant digits: "2", "-0.99999875", "3.12e-07", "NaN", "inf". No trailing zeros, no
/// "-0".
std::string number_text(double value, int digits = kDigits);

/// A small constant as a person writes it: "0.00001", and not "1e-05"; the shortest digits that read back to it.
std::string constant_text(double value);

/// The numbers of one row, each in at most `width` characters. A number that needs an exponent beside others that need
/// none is a detail, and has three digits.
std::vector<std::string> row_text(const std::vector<double>& row, int digits, std::size_t width);

/// A number for JSON: the shortest digits that read back to the same bits in `dtype`; "NaN", "Infinity" or "-Infinity".
nlohmann::ordered_json json_number(double value, DType dtype);
/// A list of them.
nlohmann::ordered_json json_row(const std::vector<double>& row, DType dtype);

/// The text of a page's JSON: keys one below the other, each row of numbers on one line.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace handgrad::train::explain
