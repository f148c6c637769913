#include "handgrad/view/explain/sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

constexpr std::size_t kColumns = 100;  // of the page
constexpr std::size_t kIndent = 5;     // where labels begin
constexpr std::size_t kFormula = 19;   // where formulas and sentences begin
constexpr std::size_t kNote = 63;      // where remarks begin, unless the sentence is longer
constexpr std::size_t kCell = 12;      // of a number, a blank before it included
constexpr std::size_t kBeside = 4;     // at most so many numbers are beside their formula
constexpr std::size_t kWhole = 8;      // longer rows are shortened, longer sums not spelled out
constexpr std::size_t kShown = 3;      // first numbers of a shortened row
constexpr const char* kGap = "____";

}  // namespace

const std::vector<std::string>& part_names() {
  static const std::vector<std::string> names{"all", "forward", "backward", "step"};
  return names;
}

// ---- Sentence

Sentence& Sentence::add(std::string_view words) {
  pieces_.push_back({std::string(words), false});
  return *this;
}

Sentence& Sentence::add(const Either& either) {
  pieces_.push_back({either.words, false, either.on_work_sheet});
  return *this;
}

Sentence& Sentence::add(const Number& number) {
  pieces_.push_back({number_text(number.value, number.digits), number.origin == Origin::computed});
  return *this;
}

Sentence& Sentence::add(const Sum& sum) {
  if (sum.terms.size() > kWhole) return add("sum ", sum.sum);
  const bool is_given = sum.origin == Origin::given;
  add("(");
  for (std::size_t i = 0; i < sum.terms.size(); ++i) {
    const double term = sum.terms[i];
    const bool minus = i > 0 && term < 0;
    if (minus && !is_given) {
      add(Either{" - ", " + "});
    } else if (i > 0) {
      add(minus ? " - " : " + ");
    }
    add(Number(minus ? -term : term, sum.origin));
  }
  return add(")");
}

Sentence& Sentence::add(const Products& products) {
  if (products.left.size() > kWhole) return add("(", products.sum, ")");
  bool any = false;
  for (std::size_t i = 0; i < products.left.size(); ++i) {
    if (products.left[i] == 0) continue;
    add(any ? " + " : "(", products.left[i], " * ", products.right[i]);
    any = true;
  }
  return any ? add(")") : add(0.0);
}

std::string Sentence::text(bool blank) const {
  std::string text;
  for (const Piece& piece : pieces_) {
    if (blank && piece.gap) {
      text += kGap;
    } else {
      text += blank && !piece.blank.empty() ? piece.blank : piece.words;
    }
  }
  return text;
}

// ---- Layout

namespace {

/// Breaks a sentence that is too long, before an equals sign if there is one.
std::string broken(const std::string& words, std::size_t indent) {
  if (indent + words.size() <= kColumns) return words;
  constexpr std::string_view kEquals = "  =  ";
  std::size_t cut = words.rfind(kEquals, kColumns - indent);
  if (cut == std::string::npos) cut = words.find(kEquals);
  if (cut == std::string::npos) return wrapped(words, indent, kColumns);
  const std::string rest = "=  " + words.substr(cut + kEquals.size());
  return wrapped(std::string_view(words).substr(0, cut), indent, kColumns) + "\n" + std::string(indent, ' ') +
         broken(rest, indent);
}

/// Prints the lines of one section.
class Printer {
 public:
  Printer(const Section& section, bool blank)
      : section_(section),
        blank_(blank),
        shortened_(section.columns > kWhole),
        beside_(section.columns <= kBeside || shortened_),
        area_(!beside_     ? kColumns - kCell * section.columns
              : shortened_ ? kColumns - kCell * (kShown + 1) - 4
                           : kColumns - kCell * kBeside) {}

  std::string text() {
    std::string heading = section_.title;
    if (section_.columns > 0) heading = with_cells(heading, cells(headings()));
    std::string text = heading + "\n";
    for (const Line& line : section_.lines) text += line_text(line) + "\n";
    return text;
  }

 private:
  std::vector<std::string> headings() const {
    if (!section_.headings.empty()) return section_.headings;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < section_.columns; ++i) names.push_back(fmt::format("[{}]", i));
    return names;
  }

  /// The texts in columns: all of them, or the first ones and the last.
  std::string cells(const std::vector<std::string>& texts, const char* between = " ...") const {
    std::string text;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (shortened_ && i >= kShown && i + 1 < texts.size()) {
        if (i == kShown) text += between;
        continue;
      }
      text += fmt::format("{:>{}}", texts[i], kCell);
    }
    return text;
  }

  /// Numbers at the right of `left`, or below it where they do not fit.
  std::string with_cells(const std::string& left, const std::string& numbers) const {
    if (beside_ && left.size() <= area_) return fmt::format("{:<{}}{}", left, area_, numbers);
    return left + "\n" + std::string(area_, ' ') + numbers;
  }

  std::string row_cells(const Line& line) const {
    std::vector<std::string> texts = row_text(line.row, line.digits, kCell - 1);
    if (blank_ && line.origin == Origin::computed) texts.assign(line.row.size(), kGap);
    return cells(texts, "    ");
  }

  std::string line_text(const Line& line) const {
    std::string left = line.number.empty() && line.label.empty()
                           ? std::string(kIndent, ' ')
                           : fmt::format("{:>3}  {}", line.number, line.label);
    const std::string words = line.words.text(blank_);
    if (!words.empty() && !line.label.empty()) left = fmt::format("{:<{}}", left, kFormula);
    if (line.row.empty()) {
      const std::size_t indent = left.size();
      left += broken(words, indent);
    } else {
      left += words;
    }
    if (!line.note.empty() && std::max(left.size() + 2, kNote) + line.note.text(false).size() <= kColumns)
      left = fmt::format("{:<{}}{}", left, std::max(left.size() + 2, kNote), line.note.text(blank_));
    if (!line.row.empty()) left = with_cells(left, row_cells(line));
    left.erase(left.find_last_not_of(' ') + 1);
    return left;
  }

  const Section& section_;
  bool blank_, shortened_, beside_;
  std::size_t area_;
};

}  // namespace

std::string text(const Sheet& sheet, const SheetOptions& options) {
  std::string text;
  std::istringstream title(sheet.title);
  for (std::string line; std::getline(title, line);) text += wrapped(line, 0, kColumns) + "\n";
  for (const Section& section : sheet.sections)
    if (options.part == Part::all || options.part == section.part)
      text += "\n" + Printer(section, options.blank).text();
  return sheet.next.empty() ? text : text + next_lines(sheet.next, kColumns);
}

}  // namespace handgrad::view::explain
