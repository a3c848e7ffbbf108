// This file contains Executor::Admit() and its checks.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "server/batching/executor.h"
#include "server/errors/reasons.h"
#include "server/shares/hold.h"

namespace sfmamba::batching {
namespace {

// The share of a client is limited only if another client has sent a request
// within this time.
constexpr absl::Duration kOthersRemembered = absl::Minutes(1);

}  // namespace

absl::StatusOr<Reservation> Executor::Admit(const AdmissionRequest& request,
                                            int64_t bytes) {
  absl::MutexLock lock(&admit_mu_);
  absl::StatusOr<Reservation> room =
      batcher_.room().Take(request.all_images(), bytes, request.client);
  if (!room.ok()) return room.status();
  const absl::Status load = CheckLoad(request);
  if (!load.ok()) return load;
  return room;
}

absl::Status Executor::CheckLoad(const AdmissionRequest& request) {
  const absl::Time now = base::SteadyNow();
  const AdmissionEstimate estimate = batcher_.Estimate(request);
  const absl::Duration wait =
      std::max(estimate.start - now, absl::ZeroDuration());
  if (!estimate.IsInTime(request)) {
    return server::PredictedDeadlineMiss(wait, estimate.finish - now,
                                         request.deadline - now);
  }
  if (estimate.start > request.start_by) {
    return server::PredictedDeadlineMiss(wait, wait, request.start_by - now);
  }
  // A request is refused if the client's images would not be done within
  // drain_timeout. A request that alone takes longer than drain_timeout is
  // accepted if no other work delays it.
  if (estimate.drained - now > options_.drain_timeout &&
      estimate.drained > estimate.drained_alone) {
    return server::QueueFull(
        "drain",
        absl::StrCat("the client's images take ",
                     absl::FormatDuration(estimate.drained - now),
                     ", expected at most ",
                     absl::FormatDuration(options_.drain_timeout),
                     ", the drain_timeout"),
        server::kRetryAfter);
  }
  return CheckShare(request, estimate, now);
}

absl::Status Executor::CheckShare(const AdmissionRequest& request,
                                  const AdmissionEstimate& estimate,
                                  absl::Time now) {
  if (request.client.empty()) return absl::OkStatus();
  if (request.client != last_client_) {
    client_changed_ = last_client_.empty() ? absl::InfinitePast() : now;
    last_client_ = std::string(request.client);
  }
  // If only one client sends requests, its device time is not limited. If its
  // deadlines are short, a full batch of its images may need more than its
  // share of the time before the deadline. A limit would then refuse the
  // images, although no other client needs the device.
  if (now - client_changed_ > kOthersRemembered) return absl::OkStatus();
  const int64_t held = batcher_.room().clients().HeldBy(request.client);
  const double work = absl::ToDoubleSeconds(estimate.work);
  const absl::Duration drain_left =
      options_.drain_timeout - (estimate.drained - now);
  // CheckLoad() accepts a request that alone takes longer than drain_timeout.
  // `drain_left` is then negative, and the remaining time counts as zero.
  const absl::Duration left =
      std::min(request.deadline - estimate.finish,
               std::max(drain_left, absl::ZeroDuration()));
  const double free = absl::ToDoubleSeconds(left) + work;
  if (batcher_.room().clients().IsShare(work / request.all_images() * held,
                                        free)) {
    return absl::OkStatus();
  }
  return server::ClientQuota(request.client,
                             "the time before the deadline or of a drain",
                             server::kRetryAfter);
}

}  // namespace sfmamba::batching
