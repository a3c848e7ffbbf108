#ifndef SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_CONFIG_H_
#define SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_CONFIG_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/weights/weight_shapes.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// The files of a folder in Hugging Face's layout that describe its model.
struct HuggingFaceTexts {
  std::string config;                       // config.json.
  std::optional<std::string> preprocessor;  // preprocessor_config.json.
};

// A MambaVision classifier as the files describe it.
struct HuggingFaceConfig {
  // The network and its input, as a config.textproto would state them.
  v1::ModelConfig config;
  std::vector<std::string> labels;    // Empty: not read, or there are none.
  std::vector<std::string> warnings;  // Facts that the files contradict.
};

// Reads the description of a model whose tensors have these shapes.
//
// Members of config.json may stand in its root or, as timm writes them, in
// "model_args" and "pretrained_cfg"; the root's count first. The family must be
// MambaVision by `model_type` or, without it, by a model's name, such as
// `architectures` or `architecture`. The variant is the row of these shapes.
// `window_size` and `num_heads` replace that row's values; see
// ReadHuggingFaceInput() for the input. `stated` is the config.textproto
// beside it. If rows differ in their windows alone, its variant decides, or
// else the first of `window_size`, a model's name and the input's size that is
// there. If `with_labels`, `id2label` or `label_names` must name every class.
//
// INVALID_ARGUMENT, naming the member, if a file is not JSON, is of another
// family, has a value of the wrong type, or contradicts the shapes or `stated`.
//
// tools/checkpoint/hugging_face.py reads the same files by the same rules.
// tests/testdata/hugging_face has cases that test both.
absl::StatusOr<HuggingFaceConfig> ReadHuggingFaceConfig(
    const HuggingFaceTexts& texts, const weights::ClassifierShapes& shapes,
    const v1::ModelConfig& stated = {}, bool with_labels = true);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_CONFIG_H_
