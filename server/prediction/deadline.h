#ifndef SFMAMBA_SERVER_PREDICTION_DEADLINE_H_
#define SFMAMBA_SERVER_PREDICTION_DEADLINE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba::prediction {

// Returns the deadline of a request that arrived at `start`. A client without a
// deadline (InfiniteFuture()) gets `start + otherwise`. No deadline is later
// than `start + longest`. All times are SteadyNow()'s, because setting the wall
// clock must not move deadlines.
absl::Time DeadlineOf(absl::Time client, absl::Time start,
                      absl::Duration otherwise, absl::Duration longest);

// Returns whether a client that hung up at `now` did so because its `deadline`
// passed. The client's deadline passes earlier than the server's copy. The
// difference is the network delay plus up to 1 % of the timeout, which gRPC
// rounds up.
bool HungUpAtDeadline(absl::Time start, absl::Time deadline, absl::Time now);

// Returns the stage named in a status of server::Expired() or Cancelled(), or
// `otherwise` if the status names no stage.
std::string StageOf(const absl::Status& status, absl::string_view otherwise);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_DEADLINE_H_
