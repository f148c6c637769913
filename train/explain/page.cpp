#include "handgrad/train/explain/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace handgrad::train::explain {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of_part(Part part) {
  switch (part) {
    case Part::forward:
      return "forward";
    case Part::backward:
      return "backward";
    default:
      return "step";
  }
}

}  // namespace

Page::Page(const Request& request, const std::string& title, const char* source)
    : dtype_(request.dtype),
      sheet_{fmt::format("{}, {}. {}", title, name_of(request.dtype), source)},
      json_(
          std::make_unique<Json>(Json{{"operation", request.operation}, {"dtype", name_of(request.dtype)}})) {
}

Page::~Page() = default;

void Page::section(Part part, const std::string& title, std::size_t columns,
                   std::vector<std::string> headings) {
  sheet_.sections.push_back({part, title, columns, {}, std::move(headings)});
}

void Page::in_row(std::int64_t row) { row_ = row; }

Json& Page::place() {
  Json& object = row_ < 0 ? *json_ : (*json_)["rows"][static_cast<std::size_t>(row_)];
  return object[name_of_part(sheet_.sections.back().part)];
}

void Page::row(const std::string& number, const std::string& label, const Sentence& formula,
               const std::string& key, const Row& numbers, Source source) {
  sheet_.sections.back().lines.push_back({number, label, formula, numbers, source});
  if (!key.empty()) note(key, numbers);
}

void Page::row(const std::string& number, const std::string& label, const Sentence& formula,
               const std::string& key, const Array& numbers, Source source) {
  row(number, label, formula, key, numbers.values(), source);
}

void Page::scalar(const std::string& number, const std::string& label, const Sentence& sentence,
                  const std::string& key, double value) {
  sheet_.sections.back().lines.push_back({number, label, sentence});
  if (!key.empty()) note(key, value);
}

void Page::say(const Sentence& sentence, const std::string& label) {
  sheet_.sections.back().lines.push_back({"", label, sentence});
}

void Page::gap() { sheet_.sections.back().lines.push_back({}); }

void Page::note(const std::string& key, const Row& numbers) { place()[key] = json_row(numbers, dtype_); }
void Page::note(const std::string& key, double number) { place()[key] = json_number(number, dtype_); }

void Page::given(const std::string& key, double number) {
  (*json_)["given"][key] = json_number(number, DType::float64);
}
void Page::given(const std::string& key, const Row& numbers) {
  (*json_)["given"][key] = json_row(numbers, DType::float64);
}
void Page::given(const std::string& key, const std::vector<Row>& rows) {
  Json& list = (*json_)["given"][key] = Json::array();
  for (const Row& row : rows) list.push_back(json_row(row, DType::float64));
}

Explanation Page::finish(std::vector<std::pair<std::string, std::string>> next, const std::string& python) {
  sheet_.next = std::move(next);
  return {std::move(sheet_), json_text(*json_), python};
}

Tensor leaf(const Row& row, DType dtype) {
  return Tensor::of(row, {static_cast<std::int64_t>(row.size())}, dtype).requires_grad();
}

Tensor leaf(const std::vector<Row>& rows, DType dtype) {
  Row all;
  for (const Row& row : rows) all.insert(all.end(), row.begin(), row.end());
  const auto count = static_cast<std::int64_t>(rows.size());
  return Tensor::of(all, {count, static_cast<std::int64_t>(rows.front().size())}, dtype).requires_grad();
}

Row row_of(const Array& array, std::int64_t i) {
  const std::int64_t width = array.shape().last();
  Row row;
  for (std::int64_t k = 0; k < width; ++k) row.push_back(array.value(i * width + k));
  return row;
}

std::string number_of_rows(std::size_t rows) { return rows == 1 ? "one row" : fmt::format("{} rows", rows); }

std::string of_rows(std::size_t row, std::size_t rows) {
  return rows == 1 ? "" : fmt::format(", row {} of {}", row + 1, rows);
}

std::vector<std::pair<std::string, std::string>> usual_next(const Request& request) {
  return {{request.command + " --blank", "a work sheet, to fill in"},
          {request.command + " --python", "the same in PyTorch"}};
}

}  // namespace handgrad::train::explain
