// A text table whose columns are as wide as their widest cell.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace handgrad::view {

/// How a column's cells are aligned.
enum class Align { left, right };

/// Collects rows of cells, then lays them out.
class Table {
 public:
  /// A heading, and how the cells below it are laid out.
  struct Column {
    std::string heading;         ///< the first cell
    Align align = Align::right;  ///< of heading and cells
    std::size_t width = 0;       ///< at least
    std::size_t gap = 2;         ///< blanks before it, except before the first column
    std::size_t most = 1000;     ///< as wide at most; longer cells push the rest of their line to the right
  };

  /// The headings are the first row.
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {
    std::vector<std::string> headings;
    for (const Column& column : columns_) headings.push_back(column.heading);
    add(std::move(headings));
  }

  /// At most one cell for each column. The last one, left-aligned, may run into the columns after it.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// A line for the headings and one for each row, without trailing blanks.
  std::string text() const {
    std::vector<std::size_t> widths(columns_.size());
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = columns_[i].width;
      for (const auto& row : rows_)
        if (i + 1 < row.size() || (i < row.size() && columns_[i].align == Align::right))
          widths[i] = std::max(widths[i], std::min(row[i].size(), columns_[i].most));
    }
    std::string text;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string padding(std::max(widths[i], row[i].size()) - row[i].size(), ' ');
        if (i > 0) line.append(columns_[i].gap, ' ');
        line += columns_[i].align == Align::right ? padding + row[i] : row[i] + padding;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // the headings first
};

}  // namespace handgrad::view
