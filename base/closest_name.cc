#include "base/closest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace sfmamba::base {
namespace {

// Returns Levenshtein's distance. `row` is one row of the usual table of
// distances.
size_t Distance(absl::string_view a, absl::string_view b) {
  // row[j] is the distance from the first i letters of `a` to the first j of
  // `b`.
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string ClosestName(absl::string_view name,
                        const std::vector<std::string>& names) {
  constexpr size_t kLongest = 64;  // Longer names are hardly typing mistakes.
  if (name.size() > kLongest) return "";
  std::string closest;
  size_t least = kLongest;
  for (const std::string& candidate : names) {
    const size_t distance = Distance(candidate, name);
    if (distance < least && 3 * distance <= candidate.size() + 1) {
      closest = candidate;
      least = distance;
    }
  }
  return closest;
}

}  // namespace sfmamba::base
