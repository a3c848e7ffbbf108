#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_CONFIG_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_CONFIG_H_

#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/weights/weight_shapes.h"
#include "server/batching/batch_queue.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// Converts a precision. Unspecified and AUTO become FP32.
model::Precision ToPrecision(v1::Precision precision);

// Converts a task. Unspecified becomes CLASSIFICATION.
model::VisionTask ToTask(v1::ModelConfig::Task task);

// Creates the model's configuration for `classes` labels. 0 labels means that
// there is no labels.txt. The configuration is the variant's table row with the
// values found in the weights' shapes and the fields set in `proto`. Returns
// INVALID_ARGUMENT with the field that is out of range, unused by this model,
// or in conflict with another file.
absl::StatusOr<model::ModelConfig> ToModelConfig(
    const v1::ModelConfig& proto, int classes,
    const weights::WeightShapes& shapes = {});

// Converts the batching options and sets the defaults for `task` on GPUs or the
// CPU. ToModelConfig() must have accepted the configuration.
batching::BatchOptions ToBatchOptions(const v1::Batching& proto,
                                      model::VisionTask task,
                                      bool on_gpus = false);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_CONFIG_H_
