#ifndef SFMAMBA_SERVER_PREDICTION_DEADLINE_H_
#define SFMAMBA_SERVER_PREDICTION_DEADLINE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba::prediction {

// The deadline, in SteadyNow()'s time, of a request that arrived just now, so
// that a wall clock set back later changes nothing. `client` and `wall_now` are
// in the wall clock's time. A request without deadline (InfiniteFuture()) gets
// `otherwise`; no request gets more than `longest`.
absl::Time SteadyDeadline(absl::Time client, absl::Time wall_now,
                          absl::Time steady_now, absl::Duration otherwise,
                          absl::Duration longest);

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
