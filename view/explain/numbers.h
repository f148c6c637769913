// Numbers as a sheet of arithmetic shows them, and as JSON holds them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/core/array.h"

namespace handgrad::view::explain {

inline constexpr int kDigits = 8;  ///< significant digits of a number by default

/// `value` with at most so many significant digits: "2", "-0.99999875", "3.12e-07", "NaN", "inf". No trailing zeros, no
/// "-0".
std::string number_text(double value, int digits = kDigits);

/// A small constant as a person writes it: "0.00001", and not "1e-05"; the shortest digits that read back to it.
std::string constant_text(double value);

/// The numbers of one row, each in at most `width` characters. A number with an exponent beside others without has three
/// digits.
std::vector<std::string> row_text(const std::vector<double>& row, int digits, std::size_t width);

/// A number for JSON: the shortest digits that read back to the same bits in `dtype`; "NaN", "Infinity" or "-Infinity".
nlohmann::ordered_json json_number(double value, DType dtype);
/// A list of them.
nlohmann::ordered_json json_row(const std::vector<double>& row, DType dtype);

/// The text of a page's JSON: keys one below the other, each row of numbers on one line.
std::string json_text(const nlohmann::ordered_json& json);

// ---- What several sheets say

/// Sum, mean and biased variance of a row, by the engine's operations. A sum of the size of rounding errors is 0.
struct Moments {
  /// @{ Over all numbers.
  double sum = 0, mean = 0, variance = 0;
  /// @}
};
Moments moments(const std::vector<double>& row, DType dtype);

/// The position of the only 1 in a row of zeros; the row's size for any other row.
std::size_t one_hot(const std::vector<double>& row);

/// "1 0 0 0", or of a long row the first three and the last.
std::string spaced(const std::vector<double>& row);

/// Whether a row has a nonzero number that is, beside its largest one, as small as the last digit.
bool has_rounding(const std::vector<Array>& rows);

/// @{ A number, a list of them or a list of rows as Python writes it: "2.", "[1., 0.5]".
std::string python_number(double value);
std::string python_list(const std::vector<double>& row);
std::string python_rows(const std::vector<std::vector<double>>& rows);
/// @}

/// @{ Lines of Python: imports; a leaf with these values (as Python writes them); the backward of `name`.
std::string python_head();
std::string python_leaf(const char* name, const std::string& values, DType dtype);
std::string python_backward(const char* name, const std::vector<std::vector<double>>& upstream, DType dtype);
/// @}
/// A line of Python with its result in a comment.
std::string python_line(const std::string& code, const std::string& expected);

/// What PyTorch should print of an array: its rows, separated by slashes.
std::string python_expected(const Array& array);

/// The numbers one after another; a minus sign takes the place of one blank: "-1  1".
std::string signed_row(const std::vector<double>& row);

}  // namespace handgrad::view::explain
