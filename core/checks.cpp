#include "handgrad/core/checks.h"

namespace handgrad::checks {

std::vector<Operand> shapes(std::initializer_list<Named> operands) {
  std::vector<Operand> all;
  for (const Named& operand : operands) all.emplace_back(operand.name, operand.tensor.shape());
  return all;
}

void refuse_types(const char* op, std::initializer_list<Named> operands) {
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

void refuse_dim(const char* op, int dim, const Tensor& x) {
  const int rank = x.rank();
  throw ShapeError(op,
                   rank == 0 ? "a scalar has no dimensions, got dimension " + std::to_string(dim)
                             : "dimension must lie in " + std::to_string(-rank) + ".." +
                                   std::to_string(rank - 1) + ", got " + std::to_string(dim),
                   {{"x", x.shape()}});
}

}  // namespace handgrad::checks
