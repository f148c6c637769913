#include "handgrad/view/explain/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace handgrad::view::explain {
using Json = nlohmann::ordered_json;

Page::Page(const Request& request, const std::string& title, const char* source)
    : dtype_(request.dtype),
      sheet_{fmt::format("{}, {}. {}", title, name_of(request.dtype), source)},
      json_(
          std::make_unique<Json>(Json{{"operation", request.operation}, {"dtype", name_of(request.dtype)}})) {
}

Page::~Page() = default;
Page::Page(Page&&) noexcept = default;

void Page::section(Part part, const std::string& title, std::size_t columns,
                   std::vector<std::string> headings) {
  sheet_.sections.push_back({part, title, columns, {}, std::move(headings)});
}

Json& Page::place() {
  Json& object = row_ < 0 ? *json_ : (*json_)["rows"][static_cast<std::size_t>(row_)];
  return object[name_of(sheet_.sections.back().part)];
}

Line& Page::row(const std::string& number, const std::string& label, const Sentence& formula,
                const std::string& key, const Numbers& numbers, Origin origin) {
  if (!key.empty()) note(key, numbers);
  return sheet_.sections.back().lines.emplace_back(Line{number, label, formula, numbers, origin});
}

Line& Page::row(const std::string& number, const std::string& label, const Sentence& formula,
                const std::string& key, const Array& numbers, Origin origin) {
  return row(number, label, formula, key, numbers.values(), origin);
}

Line& Page::scalar(const std::string& number, const std::string& label, const Sentence& sentence,
                   const std::string& key, double value) {
  note(key, value);
  return say(number, label, sentence);
}

Line& Page::say(const Sentence& sentence, const std::string& label) { return say("", label, sentence); }

Line& Page::say(const std::string& number, const std::string& label, const Sentence& sentence) {
  return sheet_.sections.back().lines.emplace_back(Line{number, label, sentence});
}

void Page::gap() { sheet_.sections.back().lines.push_back({}); }

void Page::note(const std::string& key, const Numbers& numbers) { place()[key] = json_row(numbers, dtype_); }
void Page::note(const std::string& key, double number) { place()[key] = json_number(number, dtype_); }

void Page::given(const std::string& key, double number) {
  (*json_)["given"][key] = json_number(number, DType::float64);
}
void Page::given(const std::string& key, const Numbers& numbers) {
  (*json_)["given"][key] = json_row(numbers, DType::float64);
}
void Page::given(const std::string& key, const std::vector<Numbers>& rows) {
  Json& list = (*json_)["given"][key] = Json::array();
  for (const Numbers& row : rows) list.push_back(json_row(row, DType::float64));
}

Explanation Page::finish(std::vector<Command> next) {
  sheet_.next = std::move(next);
  return {std::move(sheet_), json_text(*json_), std::move(python_)};
}

Explanation explain_rows(const Request& request, const RowFunction& rows) {
  const std::size_t count = request.rows.size();
  Page page(request, rows.title);
  std::string outputs, gradients;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor x = leaf(request.rows[i], request.dtype);
    Tensor y;
    const RecordedGraph graph = record_graph([&] {
      y = rows.function(x);
      y.backward(leaf(rows.upstream[i], request.dtype).array());
    });
    page.in_row(i);
    rows.write(page, graph, x, of_rows(i, count));
    outputs += (i == 0 ? "" : " / ") + signed_row(y.values());
    gradients += (i == 0 ? "" : " / ") + signed_row(x.grad().values());
  }
  page.python() = python_head() + python_leaf("x", python_rows(request.rows), request.dtype) +
                  python_line(rows.torch, outputs) + python_backward("y", rows.upstream, request.dtype) +
                  python_line("print(x.grad)", gradients);
  return page.finish(operation_next(request));
}

Tensor leaf(const Numbers& row, DType dtype) {
  return Tensor::of(row, {static_cast<std::int64_t>(row.size())}, dtype).requires_grad();
}

Tensor leaf(const std::vector<Numbers>& rows, DType dtype) {
  Numbers all;
  for (const Numbers& row : rows) all.insert(all.end(), row.begin(), row.end());
  const auto count = static_cast<std::int64_t>(rows.size());
  return Tensor::of(all, {count, static_cast<std::int64_t>(rows.front().size())}, dtype).requires_grad();
}

std::string number_of_rows(std::size_t rows) { return rows == 1 ? "one row" : fmt::format("{} rows", rows); }

std::string of_rows(std::size_t row, std::size_t rows) {
  return rows == 1 ? "" : fmt::format(", row {} of {}", row + 1, rows);
}

std::vector<Command> operation_next(const Request& request) {
  return {suggestion(Next::work_sheet, {request.command}), suggestion(Next::python, {request.command})};
}

}  // namespace handgrad::view::explain
