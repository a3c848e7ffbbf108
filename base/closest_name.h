#ifndef SFMAMBA_BASE_CLOSEST_NAME_H_
#define SFMAMBA_BASE_CLOSEST_NAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sfmamba::base {

// Returns the element of `names` that a person who typed `name` probably meant.
// This is the element for which the fewest letters must be added, deleted or
// replaced. Returns "" if every element needs more than about a third of its
// letters changed.
std::string ClosestName(absl::string_view name,
                        const std::vector<std::string>& names);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_CLOSEST_NAME_H_
