#ifndef SFMAMBA_SERVER_PREDICTION_ITEM_COUNTS_H_
#define SFMAMBA_SERVER_PREDICTION_ITEM_COUNTS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/observability/metrics.h"

namespace sfmamba::prediction {

// Returns the outcome that is counted for an image that ended with `status`.
// RESOURCE_EXHAUSTED counts as a refusal, except for the reasons
// RESPONSE_TOO_LARGE and DEVICE_OOM. These reasons count as errors, because the
// image had been admitted.
observability::ItemOutcome OutcomeOf(const absl::Status& status);

// Counts the outcome of an image that ended with `status`. Also counts the
// reason of a refusal or error, or the stage at which the deadline passed. Must
// be called once per image.
void CountItem(const absl::Status& status,
               observability::ModelMetrics* metrics);

// How long an image was in each stage, or zero for a stage that it did not
// reach.
struct StageTimes {
  absl::Duration decode, preprocess, queue, inference, postprocess;
};

// Records the time of each stage that an image reached. `status` is the status
// with which the image ended.
void CountStages(const absl::Status& status, const StageTimes& times,
                 observability::ModelMetrics* metrics);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_ITEM_COUNTS_H_
