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

// Images that ask to be admitted, before they are decoded.
struct AdmissionRequest {
  BatchKey key;    // Key of the largest images; their batch ends last.
  int images = 1;  // The images of that key, at least one.
  // The number of the other images, by their keys.
  std::map<BatchKey, int> others;
  // The caller; see server::ClientOf. Empty: no limit applies.
  absl::string_view client;
  server::Priority priority = server::Priority::kNormal;
  // The caller's deadline; InfiniteFuture() if it sent none.
  absl::Time deadline = absl::InfiniteFuture();
  // When its images must be in a batch.
  absl::Time start_by = absl::InfiniteFuture();
  // Images that were admitted before and are not in the queue yet, of all
  // clients and of its own, and how many others have room in the queue. Each is
  // taken to cost as much as the request's largest.
  int decoding = 0;
  int own_decoding = 0;
  int other_clients = 0;
  // How long until the request's images will have been decoded.
  absl::Duration decode;
  // How long it takes to encode and send the answer.
  absl::Duration answer;

  int all_images() const {
    int all = images;
    for (const auto& [other, count] : others) all += count;
    return all;
  }
};

// When a request would be answered if it were admitted now.
struct AdmissionEstimate {
  absl::Time start;     // When the last image's batch starts.
  absl::Time finish;    // 95 % of answers come by then.
  absl::Duration work;  // How long its own images occupy all slots.
  // When all of the client's images, the request's too, will have run if the
  // clients take turns.
  absl::Time drained;
  // When the request would have run if nothing else had been admitted.
  absl::Time drained_alone;

  bool IsInTime(const AdmissionRequest& request) const {
    return finish <= request.deadline;
  }
};

// Work that waits, as a request's largest images see it.
struct WorkAhead {
  absl::Duration earlier;  // The request's class does it before the request.
  absl::Duration higher;   // Work of higher classes.
  absl::Duration lower;    // Work of lower classes.
};

// The state of a queue's devices and of the request's own key.
struct AdmissionState {
  // Before the request's images, without those of its key that join them, and
  // before the last of all images of its client. The request's images of other
  // keys are part of both.
  WorkAhead work;
  WorkAhead drain;
  absl::Duration own_others;  // Work of the request's images of other keys.
  // Tasks of the request's key: those before its images, with those that are
  // decoded, and all others that could join its batch.
  int mates = 0;
  int others = 0;
  int decoding = 0;  // How many of `mates` are being decoded.
  absl::Duration gap = absl::InfiniteDuration();  // Between arrivals.
  const BatchCurve* curve = nullptr;  // Not null. Unknown: takes no time.
  // Moving average of how long a batch waits for other models on the device.
  absl::Duration turn_wait;
  // For each running batch, when it will have ended.
  std::vector<absl::Time> busy_until;
  int slots = 1;  // How many batches run concurrently.
};

// Predicts a request's answer. The work of other classes delays it by their
// shares at most.
AdmissionEstimate EstimateAdmission(const AdmissionState& state,
                                    const AdmissionRequest& request,
                                    absl::Time now);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_ADMISSION_H_
