#ifndef SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_INPUT_H_
#define SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_INPUT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "server/repository/hugging_face_members.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// Sets how pictures become the model's input, as a folder in Hugging Face's
// layout says.
//
// Each fact (size, crop, mean, ...) is the first that is stated: by the
// `levels` of config.json in their order, or else by `preprocessor`, the
// preprocessor_config.json, which is null if there is none. A later statement
// that differs becomes a warning with both members and both values.
//
// INVALID_ARGUMENT, naming the member, if a value is of the wrong type or
// range, or if config.json has an interpolation other than bicubic.
absl::Status ReadHuggingFaceInput(const std::vector<MemberLevel>& levels,
                                  const nlohmann::json& preprocessor,
                                  v1::Input* input,
                                  std::vector<std::string>* warnings);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_INPUT_H_
