#ifndef SFMAMBA_BASE_CLOSEST_NAME_H_
#define SFMAMBA_BASE_CLOSEST_NAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sfmamba::base {

// Returns the one of `names` that becomes `name` by the fewest letters added,
// taken out or replaced, at most about a third of its own; "" if there is none.
// For suggestions: `name` is what a person has typed.
std::string ClosestName(absl::string_view name,
                        const std::vector<std::string>& names);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_CLOSEST_NAME_H_
