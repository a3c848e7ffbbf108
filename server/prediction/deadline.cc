#include "server/prediction/deadline.h"

#include <algorithm>

#include "server/errors/error.h"

namespace sfmamba::prediction {

absl::Time DeadlineOf(absl::Time client, absl::Time start,
                      absl::Duration otherwise, absl::Duration longest) {
  if (client == absl::InfiniteFuture()) client = start + otherwise;
  return std::min(client, start + longest);
}

bool HungUpAtDeadline(absl::Time start, absl::Time deadline, absl::Time now) {
  const absl::Duration grace = absl::Milliseconds(5) + (deadline - start) / 100;
  return now >= deadline - grace;
}

std::string StageOf(const absl::Status& status, absl::string_view otherwise) {
  const std::string stage = server::GetMetadata("stage", status);
  return stage.empty() ? std::string(otherwise) : stage;
}

}  // namespace sfmamba::prediction
