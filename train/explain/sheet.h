// Sheet: arithmetic written down line by line, as a person would. What an operation has to say is put here; how it is laid
// out, shortened, or turned into a work sheet with gaps is the same for all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/train/explain/numbers.h"

namespace handgrad::train::explain {

/// Whether a number was given or is to be worked out: a work sheet leaves a gap for the latter.
enum class Source { computed, given };

/// Words with numbers between them.
class Sentence {
 public:
  Sentence() = default;
  /// @{ Words alone. Not explicit: most sentences are.
  Sentence(const char* words) { add(words); }         // NOLINT(google-explicit-constructor)
  Sentence(const std::string& words) { add(words); }  // NOLINT(google-explicit-constructor)
  /// @}

  /// @{ Goes on with words, or with a number of so many significant digits.
  Sentence& add(std::string_view words);
  Sentence& add(double number, Source source = Source::computed, int digits = kDigits);
  /// @}
  /// Goes on with words that would give an answer away; on a work sheet with others.
  Sentence& add_either(std::string_view words, std::string_view on_work_sheet);
  /// Goes on with "(2 + 2 + 6 - 1)", or, when they are more than fit, with "sum S".
  Sentence& add_sum(const std::vector<double>& terms, double sum, Source source = Source::computed);
  /// Goes on with "(1 * -2 + 3 * 4)", products with a factor of 0 on the left left out; "0" when all are; "(S)" when they are
  /// more than fit.
  Sentence& add_products(const std::vector<double>& left, const std::vector<double>& right, double sum);

  bool empty() const { return pieces_.empty(); }  ///< whether nothing was added
  std::string text(bool blank) const;             ///< `blank`: with gaps for what is computed

 private:
  struct Piece {
    std::string words;
    bool gap;
    std::string blank = {};  // what stands there instead on a work sheet, where it is no gap
  };
  std::vector<Piece> pieces_;
};

/// One line of a sheet: a label, then a formula with its row of numbers, or a sentence with a scalar in it.
struct Line {
  std::string number = {};           ///< "7", of the line of the forward pass that it belongs to
  std::string label = {};            ///< "normalized"
  Sentence words = {};               ///< a formula, or a sentence
  std::vector<double> row = {};      ///< numbers in columns; none: the line is its sentence
  Source source = Source::computed;  ///< of the row
  int digits = kDigits;              ///< of the row's numbers
  Sentence note = {};                ///< a remark at the right
};

/// The parts of a sheet that can be asked for alone.
enum class Part { all, forward, backward, step };

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
  std::string title;                                           ///< what is explained, in which type
  std::vector<Section> sections = {};                          ///< from top to bottom
  std::vector<std::pair<std::string, std::string>> next = {};  ///< see next_lines()
};

/// How a sheet is printed.
struct SheetOptions {
  Part part = Part::all;  ///< only these sections
  bool blank = false;     ///< gaps for every computed number
};

/// The page, at most 100 columns wide. Rows of more than 8 numbers show the first three and the last.
std::string text(const Sheet& sheet, const SheetOptions& options);

}  // namespace handgrad::train::explain
