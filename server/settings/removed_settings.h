#ifndef SFMAMBA_SERVER_SETTINGS_REMOVED_SETTINGS_H_
#define SFMAMBA_SERVER_SETTINGS_REMOVED_SETTINGS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::server {

// Returns "NAME was removed: " and the replacement. Returns "" if no setting
// with this name was removed.
std::string WhyRemoved(absl::string_view name);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_REMOVED_SETTINGS_H_
