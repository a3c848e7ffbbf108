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

// Creates a model's configuration. The initial values come from the row of the
// variant in the variant table. If the shapes of the weights determine a value,
// this value replaces the value of the row. The fields that are set in `proto`
// also replace values of the row. `classes` is the number of labels, or 0 if
// there is no labels.txt. Returns INVALID_ARGUMENT if a field is out of range,
// is not used by this model, or contradicts labels.txt or the weights. The
// error names the field.
absl::StatusOr<model::ModelConfig> ToModelConfig(
    const v1::ModelConfig& proto, int classes,
    const weights::WeightShapes& shapes = {});

// Converts the batching options. Unset fields get default values, which depend
// on `task` and `on_gpus`. May be called only after ToModelConfig() has
// accepted the configuration.
batching::BatchOptions ToBatchOptions(const v1::Batching& proto,
                                      model::VisionTask task,
                                      bool on_gpus = false);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_CONFIG_H_
