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

// The files that describe the model in a folder with Hugging Face's layout.
struct HuggingFaceTexts {
  std::string config;                       // config.json.
  std::optional<std::string> preprocessor;  // preprocessor_config.json.
};

// A MambaVision classifier as described by the files.
struct HuggingFaceConfig {
  // The network and its input, in the form of a config.textproto.
  v1::ModelConfig config;
  // Empty if labels were not read or do not exist.
  std::vector<std::string> labels;
  std::vector<std::string> warnings;  // Contradictions between the files.
};

// Reads the description of a model whose tensors have the given shapes.
//
// The members of config.json may be in the root or, as timm writes them, in
// "model_args" and "pretrained_cfg". The root has priority. The family must be
// MambaVision. `model_type` contains the family. If `model_type` is missing,
// the family is read from a member that contains a model's name, such as
// `architectures` or `architecture`. The variant is the table row with the
// given shapes. If config.json has `window_size` and `num_heads`, these values
// replace the row's values. `stated` is the version's config.textproto.
//
// Several rows may have the given shapes and differ only in their windows. In
// this case, the variant in `stated` decides. If `stated` has no variant, the
// first available of `window_size`, a model's name and the input size decides.
// If `with_labels` is true, `id2label` or `label_names` must name every class.
// ReadHuggingFaceInput() describes how the input is read.
//
// Returns INVALID_ARGUMENT with the wrong member in any of these cases: a file
// is not JSON, describes another family, has a value of the wrong type, or
// contradicts the shapes or `stated`.
//
// tools/checkpoint/hugging_face.py reads these files by the same rules. The
// cases in tests/testdata/hugging_face test both programs.
absl::StatusOr<HuggingFaceConfig> ReadHuggingFaceConfig(
    const HuggingFaceTexts& texts, const weights::ClassifierShapes& shapes,
    const v1::ModelConfig& stated = {}, bool with_labels = true);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_CONFIG_H_
