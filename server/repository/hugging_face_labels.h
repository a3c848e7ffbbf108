#ifndef SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_LABELS_H_
#define SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_LABELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/repository/hugging_face_members.h"

namespace sfmamba::repository {

// Returns the names of all classes in the order of the classes. Hugging Face
// stores the names in the member id2label, and timm in label_names or labels.
// Returns an empty list if no such member exists. Returns INVALID_ARGUMENT
// unless the member has exactly one name for each of the `classes` classes. The
// error names the member.
absl::StatusOr<std::vector<std::string>> ReadHuggingFaceLabels(
    int classes, const std::vector<MemberLevel>& levels);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_LABELS_H_
