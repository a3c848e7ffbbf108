#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_NAME_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_NAME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sfmamba::repository {

// The maximum number of labels of one model.
inline constexpr int kMostLabels = 64;

// Returns true if `text` matches [A-Za-z0-9][A-Za-z0-9._-]{0,127}. All ids and
// labels must have this form.
bool IsId(absl::string_view text);

// Parses a version number. Returns 0 if `text` is not a positive decimal number
// without leading zeros.
int64_t VersionNumber(absl::string_view text);

// Returns "models/{id}/versions/{version}".
std::string VersionName(absl::string_view id, int64_t version);

// Returns a hint for an error about the unknown `id`. If an element of `ids` is
// similar to `id`, the hint names the most similar element. Otherwise the hint
// lists all elements of `ids`. If there are more than ten elements or none, the
// list is left out and the hint is empty.
std::string OtherIds(absl::string_view id, const std::vector<std::string>& ids);

// A parsed model name. At most one of `version` and `label` is set.
struct ModelName {
  std::string id;
  int64_t version = 0;  // 0 if no version is named.
  std::string label;
};

// Parses "{id}", "models/{id}", "models/{id}/versions/{n}" or
// "models/{id}/labels/{label}". Returns INVALID_ARGUMENT with reason
// INVALID_FIELD and field `field` if the name is malformed. Returns NOT_FOUND
// with reason MODEL_NOT_FOUND if the version is not a number.
absl::StatusOr<ModelName> ParseModelName(absl::string_view name,
                                         absl::string_view field);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_NAME_H_
