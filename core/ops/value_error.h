// The error of a number outside of its range: a negative eps, a dropout rate of 1.
#pragma once

#include <string>
#include <vector>

#include "handgrad/core/array.h"
#include "handgrad/core/error.h"

namespace handgrad {

/// "`rule`, got `value`", the value in the shortest digits that read back to it.
[[noreturn]] inline void refuse_value(const char* op, const char* rule, double value,
                                      std::vector<Operand> operands = {}) {
  throw ValueError(op, std::string(rule) + ", got " + Array::full({}, value, DType::float64).text(),
                   std::move(operands));
}

}  // namespace handgrad
