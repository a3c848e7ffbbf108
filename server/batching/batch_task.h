#ifndef SFMAMBA_SERVER_BATCHING_BATCH_TASK_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_TASK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/prediction_options.h"
#include "model/result.h"
#include "server/batching/reservation.h"
#include "server/image/image_buffer.h"

namespace sfmamba::batching {

// What happened to a task in its batch. Durations are zero and the size 0 if it
// never reached one.
struct BatchInfo {
  absl::Duration queue;      // From Submit to the start of the batch.
  absl::Duration inference;  // The whole batch's.
  int batch_size = 0;        // Images.
  int padded_batch_size = 0;
  int fold_factor = 0;
  std::string bucket;  // Such as "224x224".
};

// One image of one request. Times are of SteadyNow() in base/steady_clock.h.
struct BatchTask {
  image::ImageBuffer image;
  // Images of one batch agree in it: the size with the model's padding.
  int bucket_height = 0;  // Pixels.
  int bucket_width = 0;
  model::DetectionOptions detection;        // Read by detectors alone,
  model::SegmentationOptions segmentation;  // and by segmenters.
  absl::Time deadline = absl::InfiniteFuture();
  // Set by the RPC when its caller goes away; null: never cancelled.
  std::shared_ptr<const std::atomic<bool>> cancelled;
  // Room held among the waiting images; if empty, Submit takes it.
  Reservation reservation;
  // Called exactly once, on a thread of the batcher or inside Submit. Must not
  // block: a batch waits for it.
  absl::AnyInvocable<void(absl::StatusOr<model::Result>, const BatchInfo&)>
      done;

  absl::Time submitted;  // Set by Submit.

  bool is_cancelled() const {
    return cancelled != nullptr && cancelled->load();
  }
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_TASK_H_
