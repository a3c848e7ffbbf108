#ifndef SFMAMBA_SERVER_SETTINGS_REPLACE_FILE_H_
#define SFMAMBA_SERVER_SETTINGS_REPLACE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::server {

// Replaces the file, or makes it, at once: readers find all of the old or all
// of the new text. If there is an error, the file is unchanged.
absl::Status ReplaceFile(const std::string& path, absl::string_view text);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_REPLACE_FILE_H_
