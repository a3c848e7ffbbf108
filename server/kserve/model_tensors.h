#ifndef SFMAMBA_SERVER_KSERVE_MODEL_TENSORS_H_
#define SFMAMBA_SERVER_KSERVE_MODEL_TENSORS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "model/config.h"

namespace sfmamba::kserve {

// A tensor that a model takes or gives. `dims` are those of one image, without
// the batch; -1 stands for any size.
struct ModelTensor {
  absl::string_view name;
  absl::string_view datatype;  // "FP32".
  inference::DataType type;
  std::vector<int64_t> dims;
};

inline constexpr char kInputName[] = "image";
inline constexpr char kLogits[] = "logits";
inline constexpr char kEmbedding[] = "embedding";
inline constexpr char kNumDetections[] = "num_detections";
inline constexpr char kBoxes[] = "boxes";
inline constexpr char kScores[] = "scores";
inline constexpr char kClasses[] = "classes";
inline constexpr char kClassMap[] = "class_map";

ModelTensor InputOf(const model::ModelConfig& config);
// Returns the input of a model that takes files.
ModelTensor EncodedInput();
std::vector<ModelTensor> OutputsOf(const model::ModelConfig& config);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_MODEL_TENSORS_H_
