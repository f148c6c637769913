#include "handgrad/io/name_report.h"

#include <fmt/format.h>

namespace handgrad::io {

bool NameReport::expect(const std::string& name, const Shape& got, const Shape& wanted,
                        std::string_view got_type, std::string_view wanted_type) {
  if (got != wanted) {
    wrong_shape_.push_back(fmt::format("{}: file {}, model {}", name, got.text(), wanted.text()));
  } else if (got_type != wanted_type) {
    wrong_type_.push_back(fmt::format("{}: file {}, model {}", name, got_type, wanted_type));
  } else {
    return true;
  }
  return false;
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

}  // namespace handgrad::io
