#include "handgrad/core/error.h"

#include "handgrad/core/scope.h"

namespace handgrad {
namespace {

std::string full_text(const std::string& op, const std::string& message, const std::vector<Operand>& operands,
                      const std::string& advice, const std::string& module_path) {
  std::string text = op + ": " + message;
  for (std::size_t i = 0; i < operands.size(); ++i)
    text += (i == 0 ? "\n  " : "   ") + operands[i].name + " " + operands[i].text;
  if (!advice.empty()) text += "\n  try: " + advice;
  if (!module_path.empty()) text += "\n  in: " + module_path;
  return text;
}

}  // namespace

Error::Error(std::string op, std::string message, std::vector<Operand> operands, std::string advice)
    : std::runtime_error(full_text(op, message, operands, advice, current_scope().path)),
      op_(std::move(op)),
      message_(std::move(message)),
      advice_(std::move(advice)),
      module_path_(current_scope().path),
      operands_(std::move(operands)) {}

// Here, since errors know shapes and shapes do not know errors.
void Shape::throw_rank(std::size_t rank) {
  throw ShapeError(
      "shape", "must have at most " + std::to_string(kMaxRank) + " dimensions, got " + std::to_string(rank));
}

void Shape::throw_dim(int dim) const { handgrad::throw_dim("shape", dim, {"shape", *this}, rank_); }

void throw_dim(const char* op, int dim, Operand operand, int rank) {
  throw ShapeError(op,
                   rank == 0 ? "a scalar has no dimensions, got dimension " + std::to_string(dim)
                             : "dimension must lie in " + std::to_string(-rank) + ".." +
                                   std::to_string(rank - 1) + ", got " + std::to_string(dim),
                   {std::move(operand)});
}

}  // namespace handgrad
