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
  // The batch key (padded image size and type) of the request's largest images.
  // The prediction assumes that the images in `others` run first, so that the
  // request ends with the batch of its largest images.
  BatchKey key;
  int images = 1;  // The number of images with `key`, at least 1.
  // The number of images with each of the other batch keys in the request.
  std::map<BatchKey, int> others;
  // The name of the client, or its address from server::ClientOf(). If empty,
  // no limit per client applies.
  absl::string_view client;
  server::Priority priority = server::Priority::kNormal;
  // The time by which the answer must have been sent, or InfiniteFuture() if
  // admission does not check a deadline.
  absl::Time deadline = absl::InfiniteFuture();
  // The time by which the request's images must be in a batch.
  absl::Time start_by = absl::InfiniteFuture();
  // The number of images of all clients that were admitted but are not in the
  // queue yet. This request's images are not counted. Each counted image is
  // assumed to cost as much as the request's largest image.
  int decoding = 0;
  // The number of images in `decoding` that belong to the request's client.
  int own_decoding = 0;
  // The number of other clients that have reserved room in the queue.
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
  // The time when the batch with the request's last image starts.
  absl::Time start;
  // The predicted end of the request. It includes a margin, so that about 95 %
  // of requests end earlier.
  absl::Time finish;
  // The time that the queue needs for this request's images, without the time
  // for other images of the model.
  absl::Duration work;
  // The time when all admitted images of the client will be done, including the
  // images of this request. Assumes that clients take turns.
  absl::Time drained;
  // The time when the images of this request would be done if no other image
  // waited or ran. In contrast, `drained` includes the time for images that
  // were admitted earlier.
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

// The state of a queue and its devices when a request asks for admission. In
// the comments below, the request's key is the batch key of its largest images.
// A task is one image of any request in the queue.
struct AdmissionState {
  // The work that runs before the request's largest images. The request's own
  // images with other batch keys are included. Earlier tasks of the request's
  // key and priority class are left out, because they are counted in `mates`.
  WorkAhead work;
  // The work that runs until the last image of the request's client is done. It
  // includes the client's waiting images and the request's images with other
  // batch keys. Two kinds of images are not included: the request's largest
  // images, and the images that are being decoded. EstimateAdmission() adds the
  // time for both kinds.
  WorkAhead drain;
  // The device time for the request's images with other batch keys.
  absl::Duration own_others;
  // The expected number of tasks of the request's key and priority class that
  // run before the request's largest images. Images that are being decoded are
  // counted too.
  int mates = 0;
  // The number of waiting tasks of the request's key that `mates` does not
  // count. Such tasks could join the request's batch, for example tasks of
  // other priority classes.
  int others = 0;
  // The number of images in `mates` that are being decoded.
  int decoding = 0;
  // The mean time between arrivals of tasks of the request's key.
  absl::Duration gap = absl::InfiniteDuration();
  // The batch durations of the request's key. Never null. If the curve has no
  // estimates, all durations are zero.
  const BatchCurve* curve = nullptr;
  // The moving average of the time that a batch waits for other models on the
  // device.
  absl::Duration turn_wait;
  // The expected end of each running batch.
  std::vector<absl::Time> busy_until;
  int slots = 1;  // The number of batches that run concurrently.
};

// Predicts the times of a request. Work of higher priority classes delays the
// request only up to a limit. The limit is the time for earlier work of the
// request's class, multiplied by (sum of the shares of all higher classes) /
// (share of the request's class). Work of lower classes has its own limit,
// which is computed from the shares of all lower classes. The shares are in
// server::kPriorityShares. For example, the shares of HIGH and NORMAL are 8 and
// 3. HIGH work then delays a NORMAL request by at most 8/3 of the time for
// earlier NORMAL work.
AdmissionEstimate EstimateAdmission(const AdmissionState& state,
                                    const AdmissionRequest& request,
                                    absl::Time now);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_ADMISSION_H_
