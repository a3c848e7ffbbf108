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
  BatchKey key;    // Key of the largest images, whose batch ends last.
  int images = 1;  // The images of `key`, at least one.
  // The number of other images, by key.
  std::map<BatchKey, int> others;
  // The caller; see server::ClientOf. If empty, no limit applies.
  absl::string_view client;
  server::Priority priority = server::Priority::kNormal;
  // The caller's deadline; InfiniteFuture() if it sent none.
  absl::Time deadline = absl::InfiniteFuture();
  // The time by which its images must be in a batch.
  absl::Time start_by = absl::InfiniteFuture();
  // Images that were admitted but are not in the queue yet: `decoding` counts
  // those of all clients, and `own_decoding` those of this client. Each is
  // assumed to cost as much as the request's largest image. `other_clients` is
  // the number of other clients with room in the queue.
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

// Predictions for a request if it were admitted now.
struct AdmissionEstimate {
  absl::Time start;     // When the last image's batch starts.
  absl::Time finish;    // 95 % of answers are ready by then.
  absl::Duration work;  // How long its own images occupy all slots.
  // The end of the client's last image, including this request, if clients take
  // turns.
  absl::Time drained;
  // The end of the request if no other work had been admitted.
  absl::Time drained_alone;

  bool IsInTime(const AdmissionRequest& request) const {
    return finish <= request.deadline;
  }
};

// The expected time of work that runs before a request.
struct WorkAhead {
  absl::Duration earlier;  // Earlier work of the request's class.
  absl::Duration higher;   // Work of higher classes.
  absl::Duration lower;    // Work of lower classes.
};

// The state of a queue's devices and of the request's own key.
struct AdmissionState {
  // `work` runs before the request's images. It excludes tasks of the same key
  // that join their batch. `drain` runs before the last of all images of the
  // client. Both include the request's images of other keys.
  WorkAhead work;
  WorkAhead drain;
  absl::Duration own_others;  // Work of the request's images of other keys.
  // Tasks of the request's key. `mates` run before its images and include
  // images that are being decoded. `others` are all other tasks that could join
  // its batch.
  int mates = 0;
  int others = 0;
  int decoding = 0;  // How many of `mates` are being decoded.
  absl::Duration gap = absl::InfiniteDuration();  // Mean time between arrivals.
  // Not null. A curve without estimates counts as zero time.
  const BatchCurve* curve = nullptr;
  // Moving average of how long a batch waits for other models on the device.
  absl::Duration turn_wait;
  // When each running batch will have ended.
  std::vector<absl::Time> busy_until;
  int slots = 1;  // How many batches run concurrently.
};

// Predicts the times of a request. Other classes delay it at most in proportion
// to their shares.
AdmissionEstimate EstimateAdmission(const AdmissionState& state,
                                    const AdmissionRequest& request,
                                    absl::Time now);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_ADMISSION_H_
