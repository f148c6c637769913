#include "handgrad/train/name_report.h"

#include <fmt/format.h>

namespace handgrad::train {

bool NameReport::expect(const std::string& name, const Array& array, const Shape& shape, DType dtype) {
  if (array.shape() != shape) {
    wrong_shape_.push_back(fmt::format("{}: file {}, model {}", name, array.shape().text(), shape.text()));
    return false;
  }
  if (array.dtype() != dtype) {
    wrong_type_.push_back(fmt::format("{}: file {}, model {}", name, name_of(array.dtype()), name_of(dtype)));
    return false;
  }
  return true;
}

void NameReport::throw_if_any() const {
  std::vector<std::string> counts;
  std::string lines;
  const auto add = [&](const char* kind, const std::vector<std::string>& items, const char* separator) {
    if (items.empty()) return;
    counts.push_back(fmt::format("{} {}", items.size(), kind));
    lines += fmt::format("\n  {:<11} {}", kind, fmt::join(items, separator));
  };
  add("missing", missing_, ", ");
  add("unexpected", unexpected_, ", ");
  add("wrong shape", wrong_shape_, "\n              ");
  add("wrong type", wrong_type_, "\n              ");
  if (counts.empty()) return;
  const std::string summary = fmt::format("{}", fmt::join(counts, ", "));
  throw NameMismatchError(source_, summary, fmt::format("{}: {}{}", source_, summary, lines));
}

}  // namespace handgrad::train
