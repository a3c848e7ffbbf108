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

// How a task was run. All fields are zero if the task was never in a batch.
struct BatchInfo {
  absl::Duration queue;       // From Submit() to the batch's start.
  absl::Duration inference;   // From the batch's start to the image's result.
  int batch_size = 0;         // The number of images that ran together.
  int padded_batch_size = 0;  // The number of images with padding.
  int fold_factor = 0;
  std::string size_class;     // For example "224x224".
  absl::Time started;         // The start of the batch.
  tracing::SpanContext span;  // The batch's span, which is empty if not traced.
  // True if no other batch is due for the thread that calls `done`. Then `done`
  // may work for a short time.
  bool thread_is_idle = false;
};

// One image of a request. The times are by base::SteadyNow().
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
  // The task's room in the queue. If empty, Submit() reserves the room.
  Reservation reservation;
  // Called exactly once, on a thread of the batcher or inside Submit(). Must
  // not block, because it delays the other images of the batch.
  absl::AnyInvocable<void(absl::StatusOr<model::Result>, const BatchInfo&)>
      done;

  tracing::ImageTrace trace;

  absl::Time submitted;  // Set by Submit().
  // The number of batches that left the queue before this task arrived. Set by
  // BatchQueue.
  uint64_t came_after = 0;

  // Returns the client whose turns the task uses. All unknown clients share the
  // empty name and its turns.
  const std::string& client() const { return reservation->client; }
  bool is_cancelled() const {
    return cancelled != nullptr && cancelled->load();
  }
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_TASK_H_
