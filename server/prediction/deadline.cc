#include "server/prediction/deadline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace sfmamba::prediction {
namespace {

absl::Status AtStage(absl::StatusCode code, absl::string_view reason,
                     absl::string_view message, absl::string_view stage) {
  server::ErrorDetail detail;
  detail.reason = std::string(reason);
  detail.metadata = {{"stage", std::string(stage)}};
  return server::MakeError(code, absl::StrCat(message, ", stage: ", stage),
                           std::move(detail));
}

}  // namespace

absl::Time SteadyDeadline(std::chrono::system_clock::time_point client,
                          absl::Time wall_now, absl::Time steady_now,
                          absl::Duration otherwise, absl::Duration longest) {
  absl::Duration left = otherwise;
  if (client != std::chrono::system_clock::time_point::max()) {
    left = absl::FromChrono(client) - wall_now;
  }
  return steady_now + std::min(left, longest);
}

bool HungUpAtDeadline(absl::Time start, absl::Time deadline, absl::Time now) {
  const absl::Duration grace = absl::Milliseconds(5) + (deadline - start) / 100;
  return now >= deadline - grace;
}

absl::Status Expired(absl::string_view stage) {
  return AtStage(absl::StatusCode::kDeadlineExceeded, "EXPIRED_IN_QUEUE",
                 "the deadline has passed", stage);
}

absl::Status Cancelled(absl::string_view stage) {
  return AtStage(absl::StatusCode::kCancelled, "CANCELLED",
                 "the caller has cancelled", stage);
}

std::string StageOf(const absl::Status& status, absl::string_view otherwise) {
  for (const auto& [key, value] : server::GetErrorDetail(status).metadata) {
    if (key == "stage") return value;
  }
  return std::string(otherwise);
}

}  // namespace sfmamba::prediction
