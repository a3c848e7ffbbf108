#ifndef SFMAMBA_SERVER_BATCHING_BATCHER_H_
#define SFMAMBA_SERVER_BATCHING_BATCHER_H_

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
#include "base/steady_clock.h"
#include "server/batching/batch_queue.h"
#include "server/batching/batch_task.h"
#include "server/batching/reservation.h"

namespace sfmamba::batching {

// Groups tasks into batches and hands each batch to `run` on one of `slots`
// threads of its own. At most `slots` batches run concurrently; a free thread
// takes the next batch. One more thread answers the tasks that expire or are
// cancelled while they wait.
//
// Thread-safe. Submit() never blocks. Each task's `done` is called exactly
// once: by `run`, or here with RESOURCE_EXHAUSTED when the queue is full,
// DEADLINE_EXCEEDED, CANCELLED, or UNAVAILABLE while stopping. The destructor
// refuses new tasks, lets the waiting ones run, then joins the threads.
class Batcher {
 public:
  // Called by up to `slots` threads at once.
  using Run = std::function<void(Batch)>;
  // Receives the number of waiting images, their bytes and the arrival of the
  // oldest. It is called with the lock held, so it must be short.
  using QueueChanged = absl::AnyInvocable<void(int, int64_t, absl::Time)>;
  using Clock = std::function<absl::Time()>;

  Batcher(
      const BatchOptions& options, int slots, Run run,
      QueueChanged queue_changed = [](int, int64_t, absl::Time) {},
      Clock clock = base::SteadyNow);
  ~Batcher();

  // See QueueRoom::Take. The reservation is released when the task that carries
  // it leaves the queue.
  absl::StatusOr<Reservation> Reserve(int items, int64_t bytes) {
    return room_.Take(items, bytes);
  }

  void Submit(BatchTask task) ABSL_LOCKS_EXCLUDED(mu_);

  // The time at which the oldest batch that still runs was handed to `run`;
  // InfiniteFuture() if no batch runs.
  absl::Time RunningSince() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void RunLoop(int slot);  // The body of each of run_threads_.
  void DropLoop();         // The body of drop_thread_.

  // Waits for the next batch. Returns none once the batcher stops and no task
  // is left.
  std::optional<Batch> NextBatch(int slot) ABSL_LOCKS_EXCLUDED(turn_mu_, mu_);
  // Waits for tasks that are to be dropped. Returns none once the batcher stops
  // and no more will come.
  std::vector<BatchTask> NextDropped() ABSL_LOCKS_EXCLUDED(mu_);
  void MoveDropped(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReportQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Run run_;
  const Clock clock_;
  QueueRoom room_;

  // Held by the one idle thread that waits for the next batch; the other idle
  // threads wait for it.
  absl::Mutex turn_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  mutable absl::Mutex mu_;
  absl::CondVar run_wake_;  // Signalled when a batch may be due before run_at_.
  absl::CondVar drop_wake_;  // The same for drop_at_.
  QueueChanged queue_changed_ ABSL_GUARDED_BY(mu_);
  BatchQueue queue_ ABSL_GUARDED_BY(mu_);
  std::vector<BatchTask> dropped_ ABSL_GUARDED_BY(mu_);  // For drop_thread_.
  // The times at which the thread that waits for a batch, and drop_thread_,
  // wake without a signal; InfinitePast() while they do not wait.
  absl::Time run_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time drop_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  // The start of each slot's batch; InfiniteFuture() while it runs none.
  std::vector<absl::Time> running_since_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool emptied_ ABSL_GUARDED_BY(mu_) = false;  // No task waits or will.

  // Last: they start once everything above exists.
  std::thread drop_thread_;
  std::vector<std::thread> run_threads_;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCHER_H_
