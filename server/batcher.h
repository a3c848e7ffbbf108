#ifndef SFMAMBA_SERVER_BATCHER_H_
#define SFMAMBA_SERVER_BATCHER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/batch_queue.h"
#include "server/reservation.h"
#include "server/task.h"

namespace sfmamba {

// Groups tasks into batches and hands each batch to `run`, one at a time, on a
// thread of its own. A second thread answers the tasks that expire or are
// cancelled while they wait, also while a batch runs.
//
// Thread-safe. Submit() never blocks. Each task's `done` is called exactly
// once: by `run`, or here with RESOURCE_EXHAUSTED when the queue is full,
// DEADLINE_EXCEEDED, CANCELLED, or UNAVAILABLE while stopping. The destructor
// refuses new tasks, lets the waiting ones run, then joins the threads.
class Batcher {
 public:
  using Run = absl::AnyInvocable<void(Batch)>;
  // Images and their bytes that wait, and when the oldest came. Called under
  // the lock: must be short.
  using QueueChanged = absl::AnyInvocable<void(int, int64_t, absl::Time)>;
  using Clock = std::function<absl::Time()>;

  Batcher(
      const BatchOptions& options, Run run,
      QueueChanged queue_changed = [](int, int64_t, absl::Time) {},
      Clock clock = SteadyNow);
  ~Batcher();

  // See QueueRoom::Take. What is reserved goes when the task that carries it
  // leaves the queue.
  absl::StatusOr<Reservation> Reserve(int items, int64_t bytes) {
    return room_.Take(items, bytes);
  }

  void Submit(Task task) ABSL_LOCKS_EXCLUDED(mu_);

  // When `run` was called last if it has not returned since, else now.
  absl::Time LastProgress() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void RunLoop();   // The body of run_thread_.
  void DropLoop();  // The body of drop_thread_.

  // Waits for the next batch; none: stopping, and nothing is left.
  std::optional<Batch> NextBatch() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for tasks to be dropped; none: stopping, and no more will come.
  std::vector<Task> NextDropped() ABSL_LOCKS_EXCLUDED(mu_);
  void MoveDropped(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReportQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Run run_;  // Used by run_thread_ only.
  const Clock clock_;
  QueueRoom room_;

  mutable absl::Mutex mu_;
  absl::CondVar run_wake_;  // Signalled when a batch may be due before run_at_.
  absl::CondVar drop_wake_;  // The same for drop_at_.
  QueueChanged queue_changed_ ABSL_GUARDED_BY(mu_);
  BatchQueue queue_ ABSL_GUARDED_BY(mu_);
  std::vector<Task> dropped_ ABSL_GUARDED_BY(mu_);  // For drop_thread_.
  // When each thread wakes by itself; InfinitePast() while it is at work.
  absl::Time run_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time drop_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  // When the running batch began; InfiniteFuture() if none runs.
  absl::Time running_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool run_ended_ ABSL_GUARDED_BY(mu_) = false;

  // Last: they start once everything above exists.
  std::thread drop_thread_;
  std::thread run_thread_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_SERVER_BATCHER_H_
