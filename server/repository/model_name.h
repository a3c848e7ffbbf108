#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_NAME_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_NAME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sfmamba::repository {

// The most labels that a model may have.
inline constexpr int kMostLabels = 64;

// Whether `text` is [A-Za-z0-9][A-Za-z0-9._-]{0,127}, as ids and labels are.
bool IsId(absl::string_view text);

// The version that `text` is, or 0 if it is not a positive decimal without
// leading zero.
int64_t VersionNumber(absl::string_view text);

// "models/{id}/versions/{version}".
std::string VersionName(absl::string_view id, int64_t version);

// A hint for an error about an id that none of `ids` is: the closest of them,
// or all if they are few.
std::string OtherIds(absl::string_view id, const std::vector<std::string>& ids);

// What a caller calls a model by. At most one of the last two is set.
struct ModelName {
  std::string id;
  int64_t version = 0;  // 0: none.
  std::string label;
};

// Reads "{id}", "models/{id}", "models/{id}/versions/{n}" or
// "models/{id}/labels/{label}". INVALID_ARGUMENT with reason INVALID_FIELD and
// field `field`, or NOT_FOUND with reason MODEL_NOT_FOUND for a version that is
// no number.
absl::StatusOr<ModelName> ParseModelName(absl::string_view name,
                                         absl::string_view field);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_NAME_H_
