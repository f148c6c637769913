// A text table. Columns are as wide as their widest cell, or have a fixed width.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace handgrad::view {

/// How a column's cells are aligned.
enum class Align { left, right, center };

/// A heading, and how the cells below it are laid out.
struct Column {
  std::string heading;         ///< the first cell
  Align align = Align::right;  ///< of heading and cells
  std::size_t width = 0;       ///< smallest width
  std::size_t gap = 2;         ///< spaces before it; the first column has none
  std::size_t most = 1000;     ///< largest width; longer cells push the rest of their line to the right
};

/// One line of cells in columns of a fixed width, for a table that is printed row by row: `indent` spaces, then the
/// cells, without trailing spaces. Longer cells push the rest of the line to the right.
inline std::string line(const std::vector<Column>& columns, const std::vector<std::string>& cells,
                        std::size_t indent = 0) {
  std::string line(indent, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto size = static_cast<std::size_t>(std::count_if(
        cells[i].begin(), cells[i].end(), [](char c) { return (c & 0xc0) != 0x80; }));  // UTF-8 characters
    const std::size_t padding = std::max(columns[i].width, size) - size;
    const std::size_t left = columns[i].align == Align::left    ? 0
                             : columns[i].align == Align::right ? padding
                                                                : padding / 2;
    line.append(left + (i > 0 ? columns[i].gap : 0), ' ');
    line += cells[i] + std::string(padding - left, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

/// The line of the headings.
inline std::string heading(const std::vector<Column>& columns, std::size_t indent = 0) {
  std::vector<std::string> cells;
  for (const Column& column : columns) cells.push_back(column.heading);
  return line(columns, cells, indent);
}

/// Collects rows of cells, then lays them out.
class Table {
 public:
  /// Its first line has the headings.
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// At most one cell for each column. The last one, left-aligned, may run into the columns after it.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// A line for the headings and one for each row.
  std::string text() const {
    std::vector<Column> columns = columns_;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto widen = [&](std::size_t size) {
        columns[i].width = std::max(columns[i].width, std::min(size, columns[i].most));
      };
      widen(columns[i].heading.size());
      for (const auto& row : rows_)
        if (i + 1 < row.size() || (i < row.size() && columns[i].align != Align::left)) widen(row[i].size());
    }
    std::string text = heading(columns);
    for (const auto& row : rows_) text += line(columns, row);
    return text;
  }

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace handgrad::view
