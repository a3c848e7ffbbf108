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

// The texts of the files that describe a model in Hugging Face's folder layout.
struct HuggingFaceTexts {
  // The text of config.json.
  std::string config;
  // The text of preprocessor_config.json. nullopt if there is no such file.
  std::optional<std::string> preprocessor;
};

// The description of a classifier, read from the files in Hugging Face's
// layout.
struct HuggingFaceConfig {
  // The network and its input, in the form of a config.textproto.
  v1::ModelConfig config;
  // The names of the classes. Empty if the names were not read or the files
  // contain no names.
  std::vector<std::string> labels;
  // Warnings for the log, for example about files that contradict each other.
  std::vector<std::string> warnings;
};

// Reads the description of a MambaVision classifier from `texts`. `shapes` are
// the shapes of the model's tensors. `stated` is the version's
// config.textproto.
//
// The members of config.json may be in the root or, as timm writes them, in
// "model_args" and "pretrained_cfg". The root has priority. The model's family
// must be MambaVision. The member `model_type` names the family. If
// `model_type` is missing, the family is read from a member that contains a
// model's name, such as `architectures` or `architecture`.
//
// The variant is the row with the given shapes in the table of variants
// (model/config.h). Several rows may have these shapes. If their attention
// windows differ, the row is selected by the first item of this list that
// matches a row:
// 1. the variant in `stated`
// 2. the member `window_size` of config.json
// 3. a model's name in config.json
// 4. the input size
// It is an error if no item matches a row. If the variant in `stated` matches a
// row, `window_size` is not compared with the rows. Otherwise, it is also an
// error if `window_size` matches no row or contradicts the model's name in
// config.json.
//
// Afterwards, the members `window_size` and `num_heads` of config.json replace
// the values of the selected row. If a member is missing, the value of the row
// is used.
//
// If no row has the given shapes, the variant is "custom", and `window_size`
// and `num_heads` are required. ReadHuggingFaceInput() describes how the input
// is read. If `with_labels` is true, ReadHuggingFaceLabels() reads the labels.
//
// Returns INVALID_ARGUMENT in any of these cases: a file is not JSON, describes
// another family, has a value of the wrong type, or contradicts the shapes or
// `stated`. The error names the wrong member.
//
// tools/checkpoint/hugging_face.py reads these files by the same rules. The
// cases in tests/testdata/hugging_face test both programs.
absl::StatusOr<HuggingFaceConfig> ReadHuggingFaceConfig(
    const HuggingFaceTexts& texts, const weights::ClassifierShapes& shapes,
    const v1::ModelConfig& stated = {}, bool with_labels = true);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_CONFIG_H_
