#ifndef SFMAMBA_SERVER_PREDICTION_DEADLINE_H_
#define SFMAMBA_SERVER_PREDICTION_DEADLINE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba::prediction {

// Returns the deadline of a request that arrived at `start`. If the client sent
// no deadline (InfiniteFuture()), returns `start + otherwise`. Never returns a
// time after `start + longest`. All times are by base::SteadyNow(), because a
// change of the wall clock must not move deadlines.
absl::Time DeadlineOf(absl::Time client, absl::Time start,
                      absl::Duration otherwise, absl::Duration longest);

// Returns true if a client that disconnected at `now` did so because its
// `deadline` passed. The client's deadline passes before the server's copy. The
// difference is the network delay plus up to 1 % of the timeout, because gRPC
// rounds the timeout up.
bool HungUpAtDeadline(absl::Time start, absl::Time deadline, absl::Time now);

// Returns the stage that a status of server::Expired() or Cancelled() names, or
// `otherwise` if the status names no stage.
std::string StageOf(const absl::Status& status, absl::string_view otherwise);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_DEADLINE_H_
