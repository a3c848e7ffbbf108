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

// What happened to a task in its batch. All fields are zero if the task never
// reached a batch.
struct BatchInfo {
  absl::Duration queue;       // From Submit() to the batch's start.
  absl::Duration inference;   // From the batch's start to the image's result.
  int batch_size = 0;         // Images that ran together.
  int padded_batch_size = 0;  // Images with padding.
  int fold_factor = 0;
  std::string size_class;     // Such as "224x224".
  absl::Time started;         // When the batch started.
  tracing::SpanContext span;  // The batch's span; empty if untraced.
  // True if no batch waits for the thread that calls `done`. `done` may then
  // work for a short time.
  bool thread_is_idle = false;
};

// One image of one request. Times are in SteadyNow()'s time.
struct BatchTask {
  image::ImageBuffer image;
  BatchKey key;
  server::Priority priority = server::Priority::kNormal;
  model::PredictionOptions options;
  // The time by which the task must be in a batch.
  absl::Time deadline = absl::InfiniteFuture();
  // The time by which its batch must have ended for the answer to be useful.
  absl::Time finish_by = absl::InfiniteFuture();
  // Set when the caller goes away. If null, the task is never cancelled.
  std::shared_ptr<const std::atomic<bool>> cancelled;
  // The task's place in the queue. If empty, Submit() reserves one.
  Reservation reservation;
  // Called exactly once, on a thread of the batcher or inside Submit(). It must
  // not block, because it delays the rest of the batch.
  absl::AnyInvocable<void(absl::StatusOr<model::Result>, const BatchInfo&)>
      done;

  tracing::ImageTrace trace;

  absl::Time submitted;  // Set by Submit().
  // The number of batches that left the queue before this task arrived. Set by
  // BatchQueue.
  uint64_t came_after = 0;

  // The client whose turns the task uses. All unknown clients share the empty
  // name and its turns.
  const std::string& client() const { return reservation->client; }
  bool is_cancelled() const {
    return cancelled != nullptr && cancelled->load();
  }
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_TASK_H_
