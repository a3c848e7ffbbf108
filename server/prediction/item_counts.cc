#include "server/prediction/item_counts.h"

#include <string>

#include "server/errors/error.h"
#include "server/prediction/deadline.h"

namespace sfmamba::prediction {

using observability::ItemOutcome;
using observability::Stage;

ItemOutcome OutcomeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ItemOutcome::kOk;
    case absl::StatusCode::kResourceExhausted: {
      const std::string reason = server::GetErrorDetail(status).reason;
      return reason == "DEVICE_OOM" || reason == "RESPONSE_TOO_LARGE"
                 ? ItemOutcome::kError
                 : ItemOutcome::kRejected;
    }
    case absl::StatusCode::kDeadlineExceeded:
      return ItemOutcome::kExpired;
    case absl::StatusCode::kCancelled:
      return ItemOutcome::kCancelled;
    default:
      return ItemOutcome::kError;
  }
}

void CountItem(const absl::Status& status,
               observability::ModelMetrics* metrics) {
  const ItemOutcome outcome = OutcomeOf(status);
  metrics->ItemDone(outcome);
  const std::string reason =
      server::GetErrorDetail(server::WithErrorInfo(status)).reason;
  if (outcome == ItemOutcome::kRejected) {
    metrics->Rejected(reason, server::GetMetadata("queue", status));
  } else if (outcome == ItemOutcome::kError) {
    metrics->ItemFailed(reason);
  } else if (outcome == ItemOutcome::kExpired) {
    metrics->DeadlineMissed(StageOf(status, "queue"));
  }
}

void CountStages(const absl::Status& status, const StageTimes& times,
                 observability::ModelMetrics* metrics) {
  const ItemOutcome outcome = OutcomeOf(status);
  const auto count = [&](Stage stage, absl::Duration time) {
    if (time <= absl::ZeroDuration()) return;
    metrics->StageDone(stage, outcome, time);
  };
  count(Stage::kDecode, times.decode);
  count(Stage::kPreprocess, times.preprocess);
  count(Stage::kQueue, times.queue);
  count(Stage::kInference, times.inference);
  count(Stage::kPostprocess, times.postprocess);
}

}  // namespace sfmamba::prediction
