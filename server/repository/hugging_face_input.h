#ifndef SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_INPUT_H_
#define SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_INPUT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "server/repository/hugging_face_members.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// Reads the preprocessing of pictures from the files of a folder with Hugging
// Face's layout.
//
// Each value (size, crop, mean, ...) is taken from the first source that
// contains the value. The sources are the `levels` of config.json in their
// order, and then `preprocessor`. `preprocessor` is preprocessor_config.json,
// or null if this file does not exist. If a later source contains a different
// value, a warning contains both members and both values.
//
// Returns INVALID_ARGUMENT with the wrong member if a value has the wrong type
// or range, or if the interpolation in config.json is not bicubic.
absl::Status ReadHuggingFaceInput(const std::vector<MemberLevel>& levels,
                                  const nlohmann::json& preprocessor,
                                  v1::Input* input,
                                  std::vector<std::string>* warnings);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_INPUT_H_
