#ifndef SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_LABELS_H_
#define SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_LABELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/repository/hugging_face_members.h"

namespace sfmamba::repository {

// Returns the names of all classes from Hugging Face's id2label or timm's
// label_names. Returns no names if neither member exists. Returns
// INVALID_ARGUMENT with the wrong member if one of the `classes` classes has no
// name.
absl::StatusOr<std::vector<std::string>> ReadHuggingFaceLabels(
    int classes, const std::vector<MemberLevel>& levels);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_LABELS_H_
