#ifndef SFMAMBA_SERVER_PREDICTION_ITEM_COUNTS_H_
#define SFMAMBA_SERVER_PREDICTION_ITEM_COUNTS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/observability/metrics.h"

namespace sfmamba::prediction {

// Returns the outcome that is counted for an image that ended with `status`.
// RESOURCE_EXHAUSTED counts as a refusal (kRejected), unless the reason is
// RESPONSE_TOO_LARGE or DEVICE_OOM. An image with one of these two reasons had
// been admitted and therefore counts as an error.
observability::ItemOutcome OutcomeOf(const absl::Status& status);

// Counts the outcome of an image that ended with `status`. For a refusal or an
// error, also counts the reason. For a missed deadline, also counts the stage
// in which the deadline passed. Must be called once per image.
void CountItem(const absl::Status& status,
               observability::ModelMetrics* metrics);

// How long an image spent in each stage. The time is zero if the image did not
// reach the stage.
struct StageTimes {
  absl::Duration decode, preprocess, queue, inference, postprocess;
};

// Records the time of each stage that an image reached. `status` is the status
// with which the image ended.
void CountStages(const absl::Status& status, const StageTimes& times,
                 observability::ModelMetrics* metrics);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_ITEM_COUNTS_H_
