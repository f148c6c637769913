// Sheet: arithmetic written down line by line, as a person would. Each operation fills one in; layout, shortening and the
// work sheet with gaps are the same for all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/core/array.h"
#include "handgrad/view/next.h"

namespace handgrad::view::explain {

// ---- Numbers as a sheet shows them, and as JSON holds them

inline constexpr int kDigits = 8;  ///< significant digits of a number by default

/// `value` with at most `digits` significant digits: "2", "-0.99999875", "3.12e-07", "NaN", "inf". No trailing zeros, no
/// "-0".
std::string number_text(double value, int digits = kDigits);

/// A small constant without an exponent, "0.00001" instead of "1e-05", with the fewest digits that read back to it.
std::string constant_text(double value);

/// The numbers of one row, each in at most `width` characters. A number with an exponent beside others without has three
/// digits.
std::vector<std::string> row_text(const std::vector<double>& row, int digits, std::size_t width);

/// A number for JSON: the fewest digits that read back to the same bits in `dtype`; "NaN", "Infinity" or "-Infinity".
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

/// Whether a row has a nonzero number as small as the last digit of its largest one.
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

/// The numbers in a row, aligned so that a minus sign replaces a space: "-1  1".
std::string signed_row(const std::vector<double>& row);

// ---- The sheet

/// Whether a number was given or computed: a work sheet leaves a gap for computed ones.
enum class Origin { computed, given };

// ---- Parts of a sentence beside words

/// A number. A double converts to a computed one.
struct Number {
  Number(double number, Origin from = Origin::computed,
         int significant = kDigits)  // NOLINT(google-explicit-constructor)
      : value(number), origin(from), digits(significant) {}
  double value;
  Origin origin;
  int digits;
};
inline Number given(double value) { return {value, Origin::given}; }
inline Number digits(double value, int count) { return {value, Origin::computed, count}; }
/// "(2 + 2 + 6 - 1)", or "sum S" when there are too many terms.
struct Sum {
  std::vector<double> terms;
  double sum;
  Origin origin = Origin::computed;
};
/// "(1 * -2 + 3 * 4)" without products whose left factor is 0; "0" when all are; "(S)" when there are too many.
struct Products {
  std::vector<double> left, right;
  double sum;
};
/// Words that would reveal an answer, and what a work sheet shows instead.
struct Either {
  std::string words, on_work_sheet;
};

/// Words with numbers between them.
class Sentence {
 public:
  Sentence() = default;
  /// @{ Words alone. Not explicit: most sentences are.
  Sentence(const char* words) { add(words); }         // NOLINT(google-explicit-constructor)
  Sentence(const std::string& words) { add(words); }  // NOLINT(google-explicit-constructor)
  /// @}
  /// Sentence("sqrt(", 4.0, ")").
  template <class... Parts>
  requires(sizeof...(Parts) > 1) explicit Sentence(const Parts&... parts) { add(parts...); }

  /// @{ Appends.
  Sentence& add(std::string_view words);
  Sentence& add(const Number& number);
  Sentence& add(const Sum& sum);
  Sentence& add(const Products& products);
  Sentence& add(const Either& either);
  template <class... Parts>
  requires(sizeof...(Parts) > 1) Sentence& add(const Parts&... parts) {
    (add(parts), ...);
    return *this;
  }
  /// @}

  bool empty() const { return pieces_.empty(); }  ///< whether nothing was added
  std::string text(bool blank) const;             ///< `blank`: with gaps for what is computed

 private:
  struct Piece {
    std::string words;
    bool gap;
    std::string blank = {};  // the words on a work sheet, when they differ
  };
  std::vector<Piece> pieces_;
};

/// One line of a sheet: a label, then a formula with its row of numbers, or a sentence with a scalar in it.
struct Line {
  std::string number = {};           ///< "7", of the line of the forward pass that it belongs to
  std::string label = {};            ///< "normalized"
  Sentence words = {};               ///< a formula, or a sentence
  std::vector<double> row = {};      ///< numbers in columns; none: the line is its sentence
  Origin origin = Origin::computed;  ///< of the row
  int digits = kDigits;              ///< of the row's numbers
  Sentence note = {};                ///< a remark at the right
};

/// The parts of a sheet that can be asked for alone.
enum class Part { all, forward, backward, step };
/// "all", "forward", ...: in the order of Part.
const std::vector<std::string>& part_names();
inline const std::string& name_of(Part part) { return part_names()[static_cast<std::size_t>(part)]; }

/// Lines under a heading whose rows have equally many columns.
struct Section {
  Part part;                               ///< that it belongs to
  std::string title;                       ///< "FORWARD"
  std::size_t columns = 0;                 ///< of its rows; 0: no row
  std::vector<Line> lines = {};            ///< from top to bottom; an empty line is a blank one
  std::vector<std::string> headings = {};  ///< of the columns; none: [0], [1], ...
};

/// A whole page.
struct Sheet {
  std::string title;                   ///< what is explained, in which type
  std::vector<Section> sections = {};  ///< from top to bottom
  std::vector<Command> next = {};      ///< see next_lines()
};

/// How a sheet is printed.
struct SheetOptions {
  Part part = Part::all;  ///< only these sections
  bool blank = false;     ///< gaps for every computed number
};

/// The page, at most 100 columns wide. Rows of more than 8 numbers show the first three and the last.
std::string text(const Sheet& sheet, const SheetOptions& options);

}  // namespace handgrad::view::explain
