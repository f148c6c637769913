// Suggests existing names for a misspelled one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace handgrad::io {

/// How many letters must be inserted, removed, replaced or swapped with their neighbor to get from `a` to
/// `b` (Damerau and Levenshtein, no letter touched twice).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The name of `known` that is closest to `name`, if a third of its letters or fewer are wrong; else "".
std::string near_match(std::string_view name, const std::vector<std::string>& known);

/// The end of a message about an unknown name: `; did you mean "eps"? (known: composed, eps, type)`, the
/// known ones in alphabetical order. The question is left out when nothing is near, the list when there is
/// nothing.
std::string did_you_mean(std::string_view name, std::vector<std::string> known);

}  // namespace handgrad::io
