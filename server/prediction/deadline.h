#ifndef SFMAMBA_SERVER_PREDICTION_DEADLINE_H_
#define SFMAMBA_SERVER_PREDICTION_DEADLINE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba::prediction {

// The deadline of a request that arrived at `start`. One whose client has set
// none (InfiniteFuture()) gets `otherwise`; no request gets more than
// `longest`. All are in SteadyNow()'s time, so that a wall clock that is set
// changes nothing.
absl::Time DeadlineOf(absl::Time client, absl::Time start,
                      absl::Duration otherwise, absl::Duration longest);

// Whether a client that hung up at `now` did so because its `deadline` passed.
// The client's deadline passes earlier than the server's copy of it: by the
// time that the message travelled, and because gRPC rounds a timeout up by as
// much as 1 % on the wire.
bool HungUpAtDeadline(absl::Time start, absl::Time deadline, absl::Time now);

// The stage that a status of server::Expired() or Cancelled() names;
// `otherwise` if it names none.
std::string StageOf(const absl::Status& status, absl::string_view otherwise);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_DEADLINE_H_
