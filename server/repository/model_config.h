#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_CONFIG_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_CONFIG_H_

#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/weights/weight_shapes.h"
#include "server/batching/batch_queue.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// FP32 if it is unspecified or AUTO.
model::Precision ToPrecision(v1::Precision precision);

// CLASSIFICATION if it is unspecified.
model::VisionTask ToTask(v1::ModelConfig::Task task);

// The model's configuration for `classes` labels (0: there is no labels.txt):
// the variant's row, with what the weights' shapes say, with the fields that
// are set in place of its values. INVALID_ARGUMENT names the field that is out
// of its range or has no use here, and the file that it disagrees with.
absl::StatusOr<model::ModelConfig> ToModelConfig(
    const v1::ModelConfig& proto, int classes,
    const weights::WeightShapes& shapes = {});

// With the defaults for `task` on GPUs or the CPU. Expects what ToModelConfig()
// has accepted.
batching::BatchOptions ToBatchOptions(const v1::Batching& proto,
                                      model::VisionTask task,
                                      bool on_gpus = false);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_CONFIG_H_
