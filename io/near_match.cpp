#include "handgrad/io/near_match.h"

#include <algorithm>

namespace handgrad::io {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Row i of the table holds the distances of the first i letters of a to every beginning of b.
  std::vector<std::size_t> two_up(b.size() + 1), up(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_up, up);
    std::swap(up, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({up[j] + 1, row[j - 1] + 1, up[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_up[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string near_match(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(name.size() / 3, 1) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::vector<std::string> known) {
  std::sort(known.begin(), known.end());
  const std::string near = near_match(name, known);
  std::string text = near.empty() ? "" : "; did you mean \"" + near + "\"?";
  for (std::size_t i = 0; i < known.size(); ++i) text += (i == 0 ? " (known: " : ", ") + known[i];
  return known.empty() ? text : text + ")";
}

}  // namespace handgrad::io
