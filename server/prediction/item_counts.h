#ifndef SFMAMBA_SERVER_PREDICTION_ITEM_COUNTS_H_
#define SFMAMBA_SERVER_PREDICTION_ITEM_COUNTS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/observability/metrics.h"

namespace sfmamba::prediction {

// What an image that ended with `status` is counted as. RESOURCE_EXHAUSTED is a
// refusal, but an answer too large and a device without memory are errors: the
// image had been admitted.
observability::ItemOutcome OutcomeOf(const absl::Status& status);

// Counts an image that ended with `status`, once: its outcome, and the reason
// of a refusal or an error or the stage at which its deadline was missed.
void CountItem(const absl::Status& status,
               observability::ModelMetrics* metrics);

// How long an image was in each stage; zero for one that it did not reach.
struct StageTimes {
  absl::Duration decode, preprocess, queue, inference, postprocess;
};

// Counts the stages that an image which ended with `status` reached.
void CountStages(const absl::Status& status, const StageTimes& times,
                 observability::ModelMetrics* metrics);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_ITEM_COUNTS_H_
