#ifndef SFMAMBA_SERVER_BATCHING_ADMISSION_H_
#define SFMAMBA_SERVER_BATCHING_ADMISSION_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/batching/batch_curve.h"
#include "server/batching/batch_key.h"
#include "server/shares/priority.h"

namespace sfmamba::batching {

// A request to admit images, before they are decoded.
struct AdmissionRequest {
  BatchKey key;    // The key of the largest images, whose batch ends last.
  int images = 1;  // The number of images of `key`, at least one.
  // The number of images of each other key.
  std::map<BatchKey, int> others;
  // The caller, see server::ClientOf(). If empty, no client limit applies.
  absl::string_view client;
  server::Priority priority = server::Priority::kNormal;
  // The caller's deadline, or InfiniteFuture() if the caller sent none.
  absl::Time deadline = absl::InfiniteFuture();
  // The time by which the request's images must be in a batch.
  absl::Time start_by = absl::InfiniteFuture();
  // Images that were admitted but are not in the queue yet. `decoding` counts
  // the images of all clients, and `own_decoding` the images of this client.
  // Each such image is assumed to cost as much as the request's largest image.
  // `other_clients` is the number of other clients with reserved room in the
  // queue.
  int decoding = 0;
  int own_decoding = 0;
  int other_clients = 0;
  // The expected time until the request's images are decoded.
  absl::Duration decode;
  // The expected time to encode and send the answer.
  absl::Duration answer;

  int all_images() const {
    int all = images;
    for (const auto& [other, count] : others) all += count;
    return all;
  }
};

// The predicted times of a request that is admitted now.
struct AdmissionEstimate {
  absl::Time start;     // The start of the last image's batch.
  absl::Time finish;    // 95 % of such requests end by then.
  absl::Duration work;  // How long the request's own images occupy all slots.
  // The end of the client's last waiting image, including the images of this
  // request, if clients take turns.
  absl::Time drained;
  // When the request would end if no other work had been admitted before.
  absl::Time drained_alone;

  bool IsInTime(const AdmissionRequest& request) const {
    return finish <= request.deadline;
  }
};

// The expected time of the work before a request.
struct WorkAhead {
  absl::Duration earlier;  // Earlier work of the request's class.
  absl::Duration higher;   // Work of higher classes.
  absl::Duration lower;    // Work of lower classes.
};

// The state of a queue's devices and of the request's own key.
struct AdmissionState {
  // `work` runs before the request's images. It excludes tasks of the same key
  // that join the request's batch. `drain` runs before the client's last image,
  // including the images of this request. Both include the request's images of
  // other keys.
  WorkAhead work;
  WorkAhead drain;
  absl::Duration own_others;  // The work of the request's images of other keys.
  // The numbers of tasks of the request's key.
  // - `mates` run before the request's images. They include images that are
  //   being decoded.
  // - `others` are all other tasks that could join the request's batch.
  int mates = 0;
  int others = 0;
  int decoding = 0;  // The part of `mates` that is being decoded.
  // The mean time between arrivals.
  absl::Duration gap = absl::InfiniteDuration();
  // Never null. A curve without estimates counts as zero time.
  const BatchCurve* curve = nullptr;
  // The moving average of the time that a batch waits for other models on the
  // device.
  absl::Duration turn_wait;
  // The expected end of each running batch.
  std::vector<absl::Time> busy_until;
  int slots = 1;  // The number of batches that run concurrently.
};

// Predicts the times of a request. Other priority classes delay the request at
// most in proportion to server::kPriorityShares.
AdmissionEstimate EstimateAdmission(const AdmissionState& state,
                                    const AdmissionRequest& request,
                                    absl::Time now);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_ADMISSION_H_
