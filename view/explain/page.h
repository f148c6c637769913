// Page: the lines of a sheet and their JSON, written at once.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/core/tensor.h"
#include "handgrad/view/explain/operation.h"
#include "handgrad/view/recorded.h"

namespace handgrad::view::explain {

/// Builds an Explanation from top to bottom. Every line with a key is a number, or a row of them, in JSON too, under the
/// part of its section: {"forward": {"mean": 4}}.
class Page {
 public:
  /// `title`: its first line, to which the element type and `source`, where the numbers are from, are added.
  Page(const Request& request, const std::string& title,
       const char* source = "Every number is read from the recorded graph.");
  ~Page();
  Page(Page&&) noexcept;

  /// The next lines belong to this part, under this heading. `columns`: of its rows.
  void section(Part part, const std::string& title, std::size_t columns,
               std::vector<std::string> headings = {});
  /// From now on JSON goes into object number `row` of the list "rows"; below 0: into the page itself again.
  void in_row(std::integral auto row) { row_ = static_cast<std::int64_t>(row); }

  // Each of these adds a line and returns it: the number of the forward line, label, formula or sentence, key in JSON
  // (empty: none). What they return is valid until the next line.

  /// @{ A row of numbers beside its formula.
  Line& row(const std::string& number, const std::string& label, const Sentence& formula,
            const std::string& key, const Numbers& numbers, Origin origin = Origin::computed);
  Line& row(const std::string& number, const std::string& label, const Sentence& formula,
            const std::string& key, const Array& numbers, Origin origin = Origin::computed);
  /// @}
  /// A sentence about one number.
  Line& scalar(const std::string& number, const std::string& label, const Sentence& sentence,
               const std::string& key, double value);
  /// @{ A sentence alone.
  Line& say(const Sentence& sentence, const std::string& label = "");
  Line& say(const std::string& number, const std::string& label, const Sentence& sentence);
  /// @}
  void gap();  ///< an empty line

  /// @{ Something for JSON alone.
  void note(const std::string& key, const Numbers& numbers);
  void note(const std::string& key, double number);
  /// @}
  /// @{ An option's value, for JSON alone: {"given": {"lr": 0.1}}.
  void given(const std::string& key, double number);
  void given(const std::string& key, const Numbers& numbers);
  void given(const std::string& key, const std::vector<Numbers>& rows);
  /// @}

  Sheet& sheet() { return sheet_; }
  nlohmann::ordered_json& json() { return *json_; }
  std::string& python() { return python_; }  ///< see Explanation

  /// Closes the page. `next`: see Sheet.
  Explanation finish(std::vector<Command> next);

 private:
  nlohmann::ordered_json& place();

  DType dtype_;
  Sheet sheet_;
  std::unique_ptr<nlohmann::ordered_json> json_;
  std::string python_;
  std::int64_t row_ = -1;
};

/// A function of each row by itself.
struct RowFunction {
  std::string title;                    ///< see Page
  std::vector<Numbers> upstream;        ///< for each row
  Tensor (*function)(const Tensor& x);  ///< in primitive operations
  void (*write)(Page& page, const RecordedGraph& graph, const Tensor& x,
                const std::string& of);  ///< of one row
  const char* torch;                     ///< "y = torch.softmax(x, dim=-1)"
};
/// The page of the function for every row of the request.
Explanation explain_rows(const Request& request, const RowFunction& rows);

/// What the page of a norm shows of a model's row beside the operation's own lines.
struct ModelNorm {
  std::string title;              ///< first line
  std::vector<std::string> loss;  ///< what the loss is, in sentences
  Numbers output;                 ///< of the model
  bool scale_frozen = false;
  bool shift_frozen = false;
};
/// @{ The page of a norm. `model`: whose row it is; nullptr for typed numbers.
Page layer_norm_page(const Request& request, const ModelNorm* model);
Page rms_norm_page(const Request& request, const ModelNorm* model);
/// @}

/// @{ A row, or rows of one width, as a tensor of the request's type that collects its gradient.
Tensor leaf(const Numbers& row, DType dtype);
Tensor leaf(const std::vector<Numbers>& rows, DType dtype);
/// @}
/// Row number `i` of an array whose last dimension is the row.
Numbers row_of(const Array& array, std::integral auto i) {
  const Numbers all = array.values();
  const std::int64_t width = array.shape().last();
  const auto begin = all.begin() + static_cast<std::int64_t>(i) * width;
  return {begin, begin + width};
}
/// "one row", "2 rows"
std::string number_of_rows(std::size_t rows);
/// ", row 2 of 3", or nothing of one row.
std::string of_rows(std::size_t row, std::size_t rows);
/// What may be typed after an operation's page: a work sheet, and the same in PyTorch.
std::vector<Command> operation_next(const Request& request);

}  // namespace handgrad::view::explain
