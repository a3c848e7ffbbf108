#ifndef SFMAMBA_SERVER_API_KSERVE_PUBLISHED_MODEL_H_
#define SFMAMBA_SERVER_API_KSERVE_PUBLISHED_MODEL_H_

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

// Represents a model under one of its names. The first name is the model's id.
// If `encoded_models` is set, each model also has the name "{id}_encoded". The
// metadata of "{id}_encoded" describes the input as encoded files. Both names
// accept tensors and files and share one queue. Some clients can send only the
// kind of input that the metadata describes. The second name exists for such
// clients.
struct PublishedModel {
  std::shared_ptr<repository::ModelVersion> version;
  bool encoded = false;

  std::string name() const;
};

// Returns the model with the given name and version. If `version` is empty, the
// repository selects the version. `name` is a model's id, or the second name
// "{id}_encoded" of a model. An id takes precedence over the second name of
// another model. Returns NOT_FOUND if there is no such model. Returns
// INVALID_ARGUMENT with field `field` if `name` is malformed.
absl::StatusOr<PublishedModel> FindModel(
    const prediction::TransportEnvironment& environment, absl::string_view name,
    absl::string_view version, absl::string_view field);

// Returns all model versions under each of their names, sorted by id and
// version.
std::vector<PublishedModel> ListModels(
    const prediction::TransportEnvironment& environment);

// Describes an input or output tensor of a model. `dims` are the dimensions
// without the batch dimension. A dimension of -1 may have any size.
struct ModelTensor {
  absl::string_view name;
  absl::string_view datatype;  // The name of the type, such as "FP32".
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
// Returns the input tensor of a model that receives encoded files.
ModelTensor EncodedInput();
std::vector<ModelTensor> OutputsOf(const model::ModelConfig& config);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_PUBLISHED_MODEL_H_
