#ifndef SFMAMBA_SERVER_PREDICTION_DEADLINE_H_
#define SFMAMBA_SERVER_PREDICTION_DEADLINE_H_

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"

namespace sfmamba::prediction {

// When a call that arrived just now is due. All times but `client` and
// `wall_now` are of SteadyNow(), so that a wall clock set back later changes
// nothing. A call without deadline (time_point::max()) gets `otherwise`; none
// gets more than `longest`.
absl::Time SteadyDeadline(std::chrono::system_clock::time_point client,
                          absl::Time wall_now, absl::Time steady_now,
                          absl::Duration otherwise, absl::Duration longest);

// Whether a client that hung up at `now` did so because its `deadline` passed.
// It sees that before us, by the way of its message and because gRPC rounds a
// timeout up by as much as 1 % on the wire.
bool HungUpAtDeadline(absl::Time start, absl::Time deadline, absl::Time now);

// DEADLINE_EXCEEDED with reason EXPIRED_IN_QUEUE, seen in `stage`.
absl::Status Expired(absl::string_view stage);

// CANCELLED, seen in `stage`.
absl::Status Cancelled(absl::string_view stage);

// The stage of a status of the above; `otherwise` if it names none.
std::string StageOf(const absl::Status& status, absl::string_view otherwise);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_DEADLINE_H_
