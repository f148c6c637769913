#include "handgrad/core/checks.h"

namespace handgrad::checks {

std::vector<Operand> shapes(std::initializer_list<Named> operands) {
  std::vector<Operand> all;
  for (const Named& operand : operands) all.emplace_back(operand.name, operand.tensor.shape());
  return all;
}

void throw_types(const char* op, std::initializer_list<Named> operands) {
  std::vector<Operand> all;
  for (const Named& operand : operands) {
    if (!operand.tensor.defined())
      throw DTypeError(op, std::string(operand.name) + " is undefined: it holds no numbers");
    all.emplace_back(operand.name, operand.tensor.dtype());
  }
  throw DTypeError(op,
                   operands.size() == 1 ? "numbers must be float32 or float64"
                                        : "operands must have one element type, float32 or float64",
                   std::move(all));
}

void throw_shape(const char* op, const std::string& rule, std::initializer_list<Named> operands) {
  throw ShapeError(op, rule, shapes(operands));
}

void throw_vector(const char* op, const Named& operand, std::int64_t size, const char* reason,
                  std::initializer_list<Named> operands) {
  throw_shape(op,
              std::string(operand.name) + " must have shape " + Shape({size}).text() + ", " + reason +
                  ", got " + operand.tensor.shape().text(),
              operands);
}

void throw_value(const char* op, const char* rule, double number, std::vector<Operand> operands) {
  throw ValueError(op, std::string(rule) + ", got " + Array::full({}, number, DType::float64).text(),
                   std::move(operands));
}

}  // namespace handgrad::checks
