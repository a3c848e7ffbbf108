#ifndef SFMAMBA_SERVER_BATCHING_BATCH_TASK_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_TASK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/prediction_options.h"
#include "model/result.h"
#include "server/batching/batch_key.h"
#include "server/batching/reservation.h"
#include "server/image/image_buffer.h"
#include "server/shares/priority.h"
#include "server/tracing/batch_trace.h"
#include "server/tracing/span.h"

namespace sfmamba::batching {

// Describes the batch in which a task ran. All fields keep their default values
// if the task was never in a batch.
struct BatchInfo {
  // The time from Submit() to the start of the batch.
  absl::Duration queue;
  // The time from the start of the batch to the image's result.
  absl::Duration inference;
  int batch_size = 0;         // The number of images that ran together.
  int padded_batch_size = 0;  // `batch_size` plus padding images.
  int fold_factor = 0;
  std::string size_class;  // The padded image size, such as "224x224".
  absl::Time started;      // The start of the batch.
  // The batch's tracing span. Empty if the batch is not traced.
  tracing::SpanContext span;
  // True if no other batch is due. In this case, `done` may use the calling
  // thread for a short time.
  bool thread_is_idle = false;
};

// One image of a request. All times are on the clock of base::SteadyNow().
struct BatchTask {
  image::ImageBuffer image;
  BatchKey key;
  server::Priority priority = server::Priority::kNormal;
  model::PredictionOptions options;
  // The time by which the task must be in a batch.
  absl::Time deadline = absl::InfiniteFuture();
  // The time by which the task's batch must have ended. A later result is
  // useless.
  absl::Time finish_by = absl::InfiniteFuture();
  // Becomes true if the caller cancels. If null, the task cannot be cancelled.
  std::shared_ptr<const std::atomic<bool>> cancelled;
  // The reserved room for the task in the queue. If the reservation is empty,
  // Submit() reserves the room.
  Reservation reservation;
  // The batcher calls `done` exactly once, on one of its threads or inside
  // Submit(). `done` must not block, because this would delay the other images
  // of the batch.
  absl::AnyInvocable<void(absl::StatusOr<model::Result>, const BatchInfo&)>
      done;

  tracing::ImageTrace trace;

  absl::Time submitted;  // Set by Submit().
  // The number of batches that left the queue before this task arrived. Set by
  // BatchQueue.
  uint64_t came_after = 0;

  // Returns the name of the client that sent the task. All unknown clients
  // share the empty name. Together, they therefore get only the turns of a
  // single client.
  const std::string& client() const { return reservation->client; }
  bool is_cancelled() const {
    return cancelled != nullptr && cancelled->load();
  }
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_TASK_H_
