#ifndef SFMAMBA_SERVER_KSERVE_PUBLISHED_MODEL_H_
#define SFMAMBA_SERVER_KSERVE_PUBLISHED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "model/config.h"
#include "server/prediction/transport_environment.h"
#include "server/repository/model_repository.h"

namespace sfmamba::kserve {

// A model as clients of this protocol see it. Where `encoded_models` is set,
// each is there twice: under its id, and as "{id}_encoded", whose input is
// described as files. A request to either may have tensors or files, and both
// feed one queue; the names are for clients that ask only for what is
// described.
struct PublishedModel {
  std::shared_ptr<repository::ModelVersion> version;
  bool encoded = false;

  std::string name() const;
};

// The model that a client means by these two; an empty version is the one that
// its repository chooses. A model whose id ends with "_encoded" comes
// before another's second name. NOT_FOUND, or INVALID_ARGUMENT with field
// `field`.
absl::StatusOr<PublishedModel> FindModel(
    const prediction::TransportEnvironment& environment, absl::string_view name,
    absl::string_view version, absl::string_view field);

// All of them, by ascending id and version.
std::vector<PublishedModel> ListModels(
    const prediction::TransportEnvironment& environment);

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

#endif  // SFMAMBA_SERVER_KSERVE_PUBLISHED_MODEL_H_
