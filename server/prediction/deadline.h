#ifndef SFMAMBA_SERVER_PREDICTION_DEADLINE_H_
#define SFMAMBA_SERVER_PREDICTION_DEADLINE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba::prediction {

// Returns the deadline of a request that arrived at `start`. `client` is the
// deadline that the client sent. If the client sent none, `client` is
// InfiniteFuture() and the deadline is `start + otherwise`. The result is never
// later than `start + longest`. All times are by base::SteadyNow(), because a
// change of the wall clock must not move deadlines.
absl::Time DeadlineOf(absl::Time client, absl::Time start,
                      absl::Duration otherwise, absl::Duration longest);

// Returns true if a client that disconnected at `now` probably did so because
// its deadline had passed. `start` and `deadline` are the start and the
// deadline of the request on the server. The deadline passes slightly earlier
// on the client than on the server. The difference is the network delay plus up
// to 1 % of the timeout, because gRPC rounds timeouts up.
bool HungUpAtDeadline(absl::Time start, absl::Time deadline, absl::Time now);

// Returns the name of the processing stage that `status` contains, for example
// "decode". Errors of server::Expired() and server::Cancelled() contain such a
// name. If `status` contains none, returns `otherwise`.
std::string StageOf(const absl::Status& status, absl::string_view otherwise);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_DEADLINE_H_
