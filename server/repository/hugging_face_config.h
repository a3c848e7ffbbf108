#ifndef SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_CONFIG_H_
#define SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/weights/weight_shapes.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// What a config.json in Hugging Face's layout says of a MambaVision classifier.
struct HuggingFaceConfig {
  // The network and its input, as a config.textproto would state them.
  v1::ModelConfig config;
  std::vector<std::string> labels;  // id2label's; empty: not read.
};

// Reads the text of config.json, of a model whose tensors have these shapes.
//
// The family must be MambaVision by `model_type`, or by `architectures` in
// files without one. The variant is the row of these shapes. `window_size`,
// `num_heads`, `mean`, `std`, `crop_pct`, `crop_mode`, `input_size` and
// `interpolation` replace that row's values, which stand for what the file
// lacks. `stated` is what a config.textproto beside it says; its variant
// decides where rows differ in their windows alone and the file has none.
// `id2label` is read, and must name every class, if `with_labels`.
//
// INVALID_ARGUMENT, naming the member, if the file is not JSON, is of another
// family, has a value of the wrong type, or contradicts the shapes or `stated`.
absl::StatusOr<HuggingFaceConfig> ReadHuggingFaceConfig(
    absl::string_view json, const weights::ClassifierShapes& shapes,
    const v1::ModelConfig& stated = {}, bool with_labels = true);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_CONFIG_H_
