// Small things that the pages of several operations say.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "handgrad/core/array.h"

namespace handgrad::train::explain {

/// Sum, mean and biased variance of a row, by the engine's operations. A sum that is nothing but rounding is 0.
struct Moments {
  /// @{ Over all numbers.
  double sum = 0, mean = 0, variance = 0;
  /// @}
};
Moments moments(const std::vector<double>& row, DType dtype);

/// Position of the only 1 in a row of zeros; the row's size when it is not so.
std::size_t one_hot(const std::vector<double>& row);

/// "1 0 0 0", or of a long row the first three and the last.
std::string spaced(const std::vector<double>& row);

/// Whether a row has a number that is not 0 and yet as small, beside the largest of that row, as the last digit.
bool has_rounding(const std::vector<const std::vector<double>*>& rows, DType dtype);

/// @{ A number, a list of them or a list of rows as Python writes it: "2.", "[1., 0.5]".
std::string python_number(double value);
std::string python_list(const std::vector<double>& row);
std::string python_rows(const std::vector<std::vector<double>>& rows);
/// @}

/// A line of Python, and in a comment beside it what it gives.
std::string python_line(const std::string& code, const std::string& expected);

/// What PyTorch is expected to print of an array: its rows, parted by slashes.
std::string python_expected(const Array& array);

/// The numbers one after another, a minus sign in the blank before: "-1  1".
std::string signed_row(const std::vector<double>& row);

}  // namespace handgrad::train::explain
