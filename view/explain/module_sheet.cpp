// The plain form of a module: its recorded operations and their gradients.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "handgrad/view/explain/model_row.h"
#include "handgrad/view/explain/page.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

using Json = nlohmann::ordered_json;

double largest_of(const Array& array) {
  double largest = 0;
  for (const double value : array.values())
    if (!(std::abs(value) <= largest)) largest = std::abs(value);
  return largest;
}

std::string attribute_text(const Attribute& attribute) {
  return fmt::format("{} {}", attribute.name,
                     attribute.list.empty() ? constant_text(attribute.number) : attribute.list.text());
}

/// Writes the sections.
class Writer {
 public:
  explicit Writer(const ModelPass& pass) : pass_(pass) {
    std::size_t number = 0;
    for (const RecordedOperation& operation : pass.graph.operations()) numbers_[operation.order] = ++number;
  }

  Sheet write(const ModelRequest& request) const {
    Sheet sheet{fmt::format("{} ({}) at step {}, {}; {}\n{}", pass_.path, pass_.module->type(),
                            pass_.state.step, pass_.place, name_of(pass_.y.dtype()), pass_.state.origin)};
    sheet.sections = {row_section(), operations(), gradients()};
    if (!pass_.module->named_parameters().empty()) sheet.sections.push_back(parameters());
    sheet.next = {suggestion(Next::json, {request.command})};
    return sheet;
  }

 private:
  /// Input and output of the chosen row, if the module works on rows.
  Section row_section() const {
    Section s{Part::forward, "THE ROW", row_width()};
    const std::int64_t row = pass_.b * pass_.tokens + pass_.t;
    for (const auto& [label, array] : {std::pair{"input", &pass_.x}, std::pair{"output", &pass_.y}}) {
      if (!array->defined()) continue;
      Line line{"", label, array->shape().text()};
      if (array->shape().last() == static_cast<std::int64_t>(s.columns) && array->rank() > 0 &&
          array->numel() >= (row + 1) * array->shape().last())
        line.row = row_of(*array, row);
      s.lines.push_back(line);
    }
    return s;
  }

  std::size_t row_width() const {
    return static_cast<std::size_t>(pass_.y.rank() > 0 ? pass_.y.shape().last() : 0);
  }

  /// "layers.0", the module below this one that was running.
  std::string below(const RecordedOperation& operation) const {
    return operation.module.size() > pass_.path.size() ? operation.module.substr(pass_.path.size() + 1) : "";
  }

  std::string inputs_text(const RecordedOperation& operation) const {
    std::string text;
    for (const RecordedInput& input : operation.inputs) {
      if (input.order == 0) continue;
      const auto found = numbers_.find(input.order);
      text += (text.empty() ? "of " : ", ") +
              (found == numbers_.end() ? std::string("input") : fmt::format("{}", found->second));
    }
    return text;
  }

  Section operations() const {
    Section s{Part::forward, "OPERATIONS, as recorded; a number is the largest of its array"};
    for (std::size_t i = 0; i < pass_.graph.operations().size(); ++i) {
      const RecordedOperation& o = pass_.graph.operations()[i];
      std::string head = fmt::format("{:<20} {:<16} {:<18} {:<11}", o.op, inputs_text(o), o.shape.text(),
                                     number_text(largest_of(o.y), 5));
      if (!below(o).empty()) head += "  in " + below(o);
      s.lines.push_back({fmt::format("{}", i + 1), head});
      std::string saved;
      for (const RecordedSave& save : o.saved)
        saved += fmt::format("{}{} {}", saved.empty() ? "saved  " : ", ", save.name, save.shape.text());
      for (const Attribute& attribute : o.attributes)
        saved += (saved.empty() ? "" : "; ") + attribute_text(attribute);
      if (!saved.empty()) s.lines.push_back({"", "  ", saved});
    }
    if (s.lines.empty()) s.lines.push_back({"", "", "none: the output is the input"});
    return s;
  }

  Section gradients() const {
    Section s{Part::backward, "GRADIENTS, in reverse order; a number is the largest of its array"};
    for (std::size_t i = pass_.graph.operations().size(); i-- > 0;) {
      const RecordedOperation& o = pass_.graph.operations()[i];
      if (!o.dy.defined()) {
        s.lines.push_back({fmt::format("{}", i + 1), fmt::format("{:<20} no gradient", o.op)});
        continue;
      }
      std::string given;
      for (std::size_t k = 0; k < o.d_input.size(); ++k)
        if (o.d_input[k].defined())
          given += fmt::format("{}{} {}", given.empty() ? "gives  " : ", ", o.d_input[k].shape().text(),
                               number_text(largest_of(o.d_input[k]), 5));
      s.lines.push_back(
          {fmt::format("{}", i + 1), fmt::format("{:<20} {:<16} {:<18} {:<11}", o.op, "upstream",
                                                 o.dy.shape().text(), number_text(largest_of(o.dy), 5))});
      s.lines.push_back({"", "  ", given});
    }
    return s;
  }

  Section parameters() const {
    Section s{Part::backward,
              "PARAMETERS, and their gradients from all rows of this pass; a number is the largest"};
    std::size_t width = 0;
    const auto named = pass_.module->named_parameters();
    for (const nn::NamedParameter& p : named) width = std::max(width, p.name.size());
    for (const nn::NamedParameter& p : named) {
      std::string text = fmt::format("{:<{}} {:<14} {:<11}", p.name, width, p.parameter->shape().text(),
                                     number_text(largest_of(p.parameter->array()), 5));
      text += p.parameter->has_grad()
                  ? fmt::format("  gradient {}", number_text(largest_of(p.parameter->grad()), 5))
                  : "  no gradient";
      s.lines.push_back({"", text});
    }
    return s;
  }

  const ModelPass& pass_;
  std::map<std::uint64_t, std::size_t> numbers_;  // in the list, by creation number
};

Json array_json(const Array& array) {
  if (!array.defined()) return nullptr;
  return {{"shape", std::vector<std::int64_t>(array.shape().begin(), array.shape().end())},
          {"values", json_row(array.values(), array.dtype())}};
}

Json operation_json(const RecordedOperation& o) {
  Json inputs = Json::array(), saved = Json::object(), attributes = Json::object(), given = Json::array();
  for (const RecordedInput& input : o.inputs) inputs.push_back(input.order);
  for (const RecordedSave& save : o.saved) saved[save.name] = array_json(save.array);
  for (const Attribute& attribute : o.attributes) {
    if (attribute.list.empty()) {
      attributes[attribute.name] = json_number(attribute.number, DType::float64);
    } else {
      attributes[attribute.name] = std::vector<std::int64_t>(attribute.list.begin(), attribute.list.end());
    }
  }
  for (const Array& array : o.d_input) given.push_back(array_json(array));
  return {{"operation", o.op},        {"module", o.module},           {"order", o.order},
          {"inputs", inputs},         {"result", array_json(o.y)},    {"saved", saved},
          {"attributes", attributes}, {"upstream", array_json(o.dy)}, {"given", given}};
}

std::string module_json(const ModelPass& pass) {
  Json operations = Json::array(), parameters = Json::array();
  for (const RecordedOperation& operation : pass.graph.operations())
    operations.push_back(operation_json(operation));
  for (const nn::NamedParameter& p : pass.module->named_parameters())
    parameters.push_back({{"name", p.name},
                          {"value", array_json(p.parameter->array())},
                          {"gradient", p.parameter->has_grad() ? array_json(p.parameter->grad()) : Json()}});
  const Json json = {{"module", pass.path},         {"type", pass.module->type()},
                     {"step", pass.state.step},     {"origin", pass.state.origin},
                     {"row", {pass.b, pass.t}},     {"token", pass.token},
                     {"input", array_json(pass.x)}, {"output", array_json(pass.y)},
                     {"operations", operations},    {"parameters", parameters}};
  return json_text(json);
}

}  // namespace

Explanation explain_module(const ModelRequest& request, const ModelPass& pass) {
  return {Writer(pass).write(request), request.json ? module_json(pass) : "", ""};
}

}  // namespace handgrad::view::explain
