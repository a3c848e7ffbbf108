#ifndef SFMAMBA_SERVER_BATCHING_BATCHER_H_
#define SFMAMBA_SERVER_BATCHING_BATCHER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "server/batching/batch_queue.h"
#include "server/batching/batch_task.h"
#include "server/batching/device_turns.h"
#include "server/batching/reservation.h"
#include "server/threads/steady_cond_var.h"

namespace sfmamba::batching {

// Groups tasks into batches and runs each batch on one of its own threads. Each
// thread belongs to a device. A batch is formed when it is due and a thread has
// a turn on its device. The thread that has been free longest takes the next
// batch, unless its device is busy with other models. One more thread ends
// tasks that expire or are cancelled while they wait.
//
// Thread-safe. Submit() never blocks. Each task's `done` is called exactly
// once. A Run calls it, or the batcher calls it with an error. The error is
// RESOURCE_EXHAUSTED if the queue is full, DEADLINE_EXCEEDED, CANCELLED, or
// UNAVAILABLE while stopping. The destructor refuses new tasks, lets the
// waiting tasks run, then joins the threads.
class Batcher {
 public:
  // The outcome of a Run.
  struct Ran {
    // Whether the batch succeeded. The duration of a failed batch predicts
    // nothing.
    bool succeeded = true;
    // Answers the batch's last image. Called on the same thread once the end of
    // the batch is recorded. `idle` is true if no other batch is due. May be
    // null.
    absl::AnyInvocable<void(bool idle)> answer_last;
  };
  // Runs the batches of one thread. It is made, called and destroyed only on
  // that thread. Each call happens during a turn on the thread's device.
  using Run = absl::AnyInvocable<Ran(Batch)>;
  // Makes the Run of a thread when the thread starts. It may take seconds,
  // while batches wait. All threads call it concurrently.
  using MakeRun = std::function<Run(int thread)>;
  // Observes the queue. Calls are made with the lock held, so they must be
  // short.
  class Observer {
   public:
    virtual ~Observer() = default;
    // Reports the waiting tasks of one priority.
    virtual void QueueChanged(server::Priority priority,
                              const WaitingTasks::Waiting& waiting) = 0;
    // Reports how long a new client's image of priority NORMAL would wait for
    // its batch, how long all waiting tasks will take, and how many clients
    // wait for the device. Called at intervals while images arrive. Also called
    // when a batch has ended or images were dropped.
    virtual void WaitPredicted(absl::Duration wait, absl::Duration backlog,
                               int active_clients) = 0;
    virtual void BatchEnded(const BatchQueue::BatchDuration& times) = 0;
  };
  using Clock = std::function<absl::Time()>;

  // Starts one thread for each of `devices`, which may repeat. They must
  // outlive the batcher.
  Batcher(const BatchOptions& options, const std::vector<DeviceTurns*>& devices,
          MakeRun make_run, Observer* observer = nullptr,
          Clock clock = base::SteadyNow);
  ~Batcher();

  // The room for waiting images. A task's reservation is released when the task
  // leaves the queue.
  QueueRoom& room() { return room_; }
  const QueueRoom& room() const { return room_; }

  void Submit(BatchTask task) ABSL_LOCKS_EXCLUDED(mu_);

  // See BatchQueue::Estimate. The request's images must already have a
  // reservation. Fills in `request.decoding`, `own_decoding` and
  // `other_clients`. Drops expired tasks first.
  AdmissionEstimate Estimate(AdmissionRequest request) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the current estimates of how long batches take.
  std::vector<BatchTime> ExportProfile() const ABSL_LOCKS_EXCLUDED(mu_);
  // See BatchQueue::KeyProfiles.
  std::vector<KeyProfile> KeyProfiles() const ABSL_LOCKS_EXCLUDED(mu_);
  void ImportProfile(const std::vector<BatchTime>& times)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns when the oldest running batch was handed to its Run.
  // InfiniteFuture() if no batch runs.
  absl::Time RunningSince() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A batch and the turn in which it runs.
  struct Ready {
    Batch batch;
    DeviceTurns::Turn turn;
  };

  void RunLoop(int thread);  // The body of each of run_threads_.
  void DropLoop();           // The body of drop_thread_.

  // Records the end of a batch. Returns whether no other batch is due.
  bool BatchEnded(int thread, uint64_t number, bool succeeded)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for the next batch and for a turn to run it. If a batch is due at
  // once, the new turn follows `last`, the turn of the thread's last batch.
  // Returns none once the batcher stops and no task is left.
  std::optional<Ready> NextWork(int thread,
                                std::optional<DeviceTurns::Turn> last)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The steps of NextWork(). The lock is free between them, and another thread
  // may take the batch meanwhile.
  //
  // Waits until `thread` is the first of idle_ and a batch is due. Returns
  // false and leaves idle_ once the batcher stops and no task is left.
  bool WaitUntilDue(int thread) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns a turn on the thread's device and ends `last`. While the thread
  // waits for a turn, it is not in idle_. A thread whose device is free can
  // then take the batch.
  DeviceTurns::Turn TakeTurn(int thread, std::optional<DeviceTurns::Turn> last)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the batch that is due, if any, and removes the thread from idle_.
  // The thread has waited for its turn since `since`.
  std::optional<Batch> TakeBatch(int thread, absl::Time since)
      ABSL_LOCKS_EXCLUDED(mu_);
  void LeaveIdle(int thread) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for tasks to drop. Returns none once the batcher stops and no more
  // tasks will come.
  std::vector<BatchTask> NextDropped() ABSL_LOCKS_EXCLUDED(mu_);
  // Hands the tasks to drop_thread_.
  void Drop(std::vector<BatchTask> dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Report the waiting tasks of all classes, or of one class.
  void ReportQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReportQueue(server::Priority priority)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReportWait(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const MakeRun make_run_;
  const Clock clock_;
  Observer* const observer_;  // May be null.
  using Members = std::map<DeviceTurns*, std::unique_ptr<DeviceTurns::Member>>;
  const Members members_;
  std::vector<DeviceTurns::Member*> devices_;  // By thread.
  QueueRoom room_;

  mutable absl::Mutex mu_;
  // Signalled when a batch may be due before run_at_, or when another thread
  // becomes the first of idle_.
  server::SteadyCondVar run_wake_;
  // Signalled when a task may be dropped before drop_at_.
  server::SteadyCondVar drop_wake_;
  // Signalled when the first thread of idle_ leaves it. The other threads of
  // idle_ wait for this without a timeout.
  absl::CondVar first_wake_;
  BatchQueue queue_ ABSL_GUARDED_BY(mu_);
  std::vector<BatchTask> dropped_ ABSL_GUARDED_BY(mu_);  // For drop_thread_.
  // The free threads, the one that has been free longest first. The first waits
  // for the next batch, and the others wait to become the first.
  std::deque<int> idle_ ABSL_GUARDED_BY(mu_);
  // The start of each thread's batch. InfiniteFuture() while it runs none.
  std::vector<absl::Time> running_since_ ABSL_GUARDED_BY(mu_);
  // The times at which the first of idle_ and drop_thread_ wake without a
  // signal. InfinitePast() while they do not wait.
  absl::Time run_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time drop_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time wait_reported_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool emptied_ ABSL_GUARDED_BY(mu_) = false;  // No task waits or will come.

  // Declared last, because the threads use everything above.
  std::thread drop_thread_;
  std::vector<std::thread> run_threads_;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCHER_H_
