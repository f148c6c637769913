// Page: the lines of a sheet and their JSON, written at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/core/tensor.h"
#include "handgrad/train/explain/graph.h"
#include "handgrad/train/explain/operation.h"

namespace handgrad::train::explain {

/// Builds an Explanation from top to bottom. Every line with a key is a number, or a row of them, in JSON too, under the
/// part of its section: {"forward": {"mean": 4}}.
class Page {
 public:
  /// `title`: its first line, to which the element type and `source`, where the numbers come from, are added.
  Page(const Request& request, const std::string& title,
       const char* source = "Every number is read from the recorded graph.");
  ~Page();
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  /// The next lines belong to this part, under this heading. `columns`: of its rows.
  void section(Part part, const std::string& title, std::size_t columns,
               std::vector<std::string> headings = {});
  /// From now on JSON goes into an object of its own in the list "rows"; `row` below 0: into the page itself again.
  void in_row(std::int64_t row);

  /// @{ A line with a row of numbers: number of the forward line, label, formula, key in JSON (empty: none), numbers.
  void row(const std::string& number, const std::string& label, const Sentence& formula,
           const std::string& key, const Row& numbers, Source source = Source::computed);
  void row(const std::string& number, const std::string& label, const Sentence& formula,
           const std::string& key, const Array& numbers, Source source = Source::computed);
  /// @}
  /// A line with a sentence about one number, which stands in JSON under `key`.
  void scalar(const std::string& number, const std::string& label, const Sentence& sentence,
              const std::string& key, double value);
  /// Sentences alone.
  void say(const Sentence& sentence, const std::string& label = "");
  void gap();  ///< an empty line
  /// Something for JSON alone.
  void note(const std::string& key, const Row& numbers);
  void note(const std::string& key, double number);  ///< the same

  /// @{ What was asked with, for JSON alone: {"given": {"lr": 0.1}}.
  void given(const std::string& key, double number);
  void given(const std::string& key, const Row& numbers);
  void given(const std::string& key, const std::vector<Row>& rows);
  /// @}

  /// Closes the page.
  Explanation finish(std::vector<std::pair<std::string, std::string>> next, const std::string& python);

 private:
  nlohmann::ordered_json& place();

  DType dtype_;
  Sheet sheet_;
  std::unique_ptr<nlohmann::ordered_json> json_;
  std::int64_t row_ = -1;
};

/// @{ A row, or rows of one width, as a tensor of the request's type that collects its gradient.
Tensor leaf(const Row& row, DType dtype);
Tensor leaf(const std::vector<Row>& rows, DType dtype);
/// @}
/// Row number `i` of an array whose last dimension is the row.
Row row_of(const Array& array, std::int64_t i);
/// "one row", "2 rows"
std::string number_of_rows(std::size_t rows);
/// ", row 2 of 3", or nothing of one row.
std::string of_rows(std::size_t row, std::size_t rows);
/// What may be typed after an operation's page: a work sheet, and the same in PyTorch.
std::vector<std::pair<std::string, std::string>> usual_next(const Request& request);

}  // namespace handgrad::train::explain
