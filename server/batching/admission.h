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

// A request to admit images to a queue, before the images are decoded.
struct AdmissionRequest {
  BatchKey key;    // The key of the largest images. Their batch ends last.
  int images = 1;  // The number of images of `key`, at least one.
  // The number of images of each other key in the request.
  std::map<BatchKey, int> others;
  // The name of the client, or its address from server::ClientOf(). If empty,
  // no limit per client applies.
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

// The predicted times of a request if it is admitted now.
struct AdmissionEstimate {
  absl::Time start;   // The start of the last image's batch.
  absl::Time finish;  // The request's end. 95 % of requests end earlier.
  // How long the queue would need for only this request's images.
  absl::Duration work;
  // When the last of the client's images would end if clients take turns. This
  // includes the images of this request.
  absl::Time drained;
  // When the request would end if no other work had been admitted before.
  absl::Time drained_alone;

  bool IsInTime(const AdmissionRequest& request) const {
    return finish <= request.deadline;
  }
};

// Work that may run before a request, as expected device time.
struct WorkAhead {
  absl::Duration earlier;  // Earlier work of the request's priority class.
  absl::Duration higher;   // Work of higher priority classes.
  absl::Duration lower;    // Work of lower priority classes.
};

// The state of a queue and its devices when a request asks for admission. The
// request's key is the key of its largest images.
struct AdmissionState {
  // `work` runs before the request's images. Earlier tasks of the same key and
  // class are not included, because `mates` counts them. `drain` runs before
  // the last of the client's images, including the images of this request. Both
  // members include the request's images of other keys.
  WorkAhead work;
  WorkAhead drain;
  // The device time for the request's images of other keys.
  absl::Duration own_others;
  // Two numbers of tasks of the request's key:
  // - `mates` run before the request's images. They include images that are
  //   being decoded.
  // - `others` are all other tasks that could join the request's batch.
  int mates = 0;
  int others = 0;
  int decoding = 0;  // The part of `mates` that is being decoded.
  // The mean time between arrivals of the key's tasks.
  absl::Duration gap = absl::InfiniteDuration();
  // The batch durations of the key. Never null. If the curve has no estimates,
  // all durations are zero.
  const BatchCurve* curve = nullptr;
  // The moving average of the time that a batch waits for other models on the
  // device.
  absl::Duration turn_wait;
  // The expected end of each running batch.
  std::vector<absl::Time> busy_until;
  int slots = 1;  // The number of batches that run concurrently.
};

// Predicts the times of a request. Work of other priority classes delays the
// request at most by the share of these classes in server::kPriorityShares.
AdmissionEstimate EstimateAdmission(const AdmissionState& state,
                                    const AdmissionRequest& request,
                                    absl::Time now);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_ADMISSION_H_
