#ifndef SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_INPUT_H_
#define SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_INPUT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "server/repository/hugging_face_members.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// Reads how pictures are preprocessed (size, crop, mean, ...) from the files in
// Hugging Face's folder layout, and sets the fields of `input`.
//
// The sources of the values are the `levels` of config.json in their order, and
// then `preprocessor`. Each value is taken from the first source that contains
// it. If a later source contains a different value, a warning names both
// members and both values. `preprocessor` is preprocessor_config.json, or null
// if this file does not exist.
//
// Returns INVALID_ARGUMENT if a value has the wrong type or range, or if the
// interpolation in config.json is not bicubic. The error names the wrong
// member.
absl::Status ReadHuggingFaceInput(const std::vector<MemberLevel>& levels,
                                  const nlohmann::json& preprocessor,
                                  v1::Input* input,
                                  std::vector<std::string>* warnings);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_INPUT_H_
