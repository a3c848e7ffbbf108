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

// Groups tasks into batches and runs each batch on one of its own threads, of
// which each has a device. A batch is formed when it is due and a thread has a
// turn on its device. The thread that has been free longest takes the next
// batch, unless its device is busy with other models. One more thread answers
// the tasks that expire or are cancelled while they wait.
//
// Thread-safe. Submit() never blocks. Each task's `done` is called exactly
// once: by a Run, or here with RESOURCE_EXHAUSTED when the queue is full,
// DEADLINE_EXCEEDED, CANCELLED, or UNAVAILABLE while stopping. The destructor
// refuses new tasks, lets the waiting ones run, then joins the threads.
class Batcher {
 public:
  // What a Run leaves behind.
  struct Ran {
    // Whether the batch succeeded, so that its time says how long others take.
    bool succeeded = true;
    // Answers the batch's last image. Called once the turn has ended, on the
    // same thread; `idle`: no other batch waits for the thread now. May be
    // null.
    absl::AnyInvocable<void(bool idle)> answer_last;
  };
  // What one thread runs its batches with. It is made, called and destroyed on
  // that thread only, and called during a turn on the thread's device.
  using Run = absl::AnyInvocable<Ran(Batch)>;
  // Makes the Run of thread `thread` when that thread starts. It may take
  // seconds; batches then wait. Called by all threads concurrently.
  using MakeRun = std::function<Run(int thread)>;
  // Is told what happens to the queue. It is called with the lock held, so it
  // must be short.
  class Observer {
   public:
    virtual ~Observer() = default;
    // What waits of callers of the priority.
    virtual void QueueChanged(server::Priority priority,
                              const WaitingTasks::Waiting& waiting) = 0;
    // How long a new client's image of priority NORMAL would wait for its batch
    // now, how long all that waits will take, and how many clients wait for the
    // device. Told now and then, and whenever a batch has ended or images were
    // dropped.
    virtual void WaitPredicted(absl::Duration wait, absl::Duration backlog,
                               int active_clients) = 0;
    virtual void BatchEnded(const BatchQueue::BatchDuration& times) = 0;
  };
  using Clock = std::function<absl::Time()>;

  // One thread for each of `devices`, which may repeat and which outlive the
  // batcher.
  Batcher(const BatchOptions& options, const std::vector<DeviceTurns*>& devices,
          MakeRun make_run, Observer* observer = nullptr,
          Clock clock = base::SteadyNow);
  ~Batcher();

  // What may wait. A task's reservation is released when the task leaves the
  // queue.
  QueueRoom& room() { return room_; }
  const QueueRoom& room() const { return room_; }

  void Submit(BatchTask task) ABSL_LOCKS_EXCLUDED(mu_);

  // See BatchQueue::Estimate. The request's images hold a reservation already.
  // `request.decoding`, `own_decoding` and `other_clients` are filled in here.
  // What has expired counts no more.
  AdmissionEstimate Estimate(AdmissionRequest request) ABSL_LOCKS_EXCLUDED(mu_);

  // What is known of how long batches take.
  std::vector<BatchTime> ExportProfile() const ABSL_LOCKS_EXCLUDED(mu_);
  // See BatchQueue::KeyProfiles.
  std::vector<KeyProfile> KeyProfiles() const ABSL_LOCKS_EXCLUDED(mu_);
  void ImportProfile(const std::vector<BatchTime>& times)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The time at which the oldest batch that still runs was handed to a Run;
  // InfiniteFuture() if no batch runs.
  absl::Time RunningSince() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A batch, and the turn that it runs in.
  struct Ready {
    Batch batch;
    DeviceTurns::Turn turn;
  };

  void RunLoop(int thread);  // The body of each of run_threads_.
  void DropLoop();           // The body of drop_thread_.

  // Keeps what is known of a batch that has been run. Returns whether no other
  // is due.
  bool BatchEnded(int thread, uint64_t number, bool succeeded)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for the next batch and for a turn to run it, which goes on from
  // `last`, of the thread's last batch, where one is due at once. Returns none
  // once the batcher stops and no task is left.
  std::optional<Ready> NextWork(int thread,
                                std::optional<DeviceTurns::Turn> last)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The steps of NextWork(). Between them the lock is free, and another thread
  // may take the batch.
  //
  // Waits until `thread` is the first of idle_ and a batch is due. Returns
  // false, and leaves idle_, once the batcher stops and no task is left.
  bool WaitUntilDue(int thread) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns a turn on the thread's device, in place of `last`. While it waits
  // for one, the thread is not in idle_, so that another takes the batch if its
  // device is free.
  DeviceTurns::Turn TakeTurn(int thread, std::optional<DeviceTurns::Turn> last)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the batch that is due, if any, for the thread to run: it leaves
  // idle_ with it. The thread waited for its turn from `since` on.
  std::optional<Batch> TakeBatch(int thread, absl::Time since)
      ABSL_LOCKS_EXCLUDED(mu_);
  void LeaveIdle(int thread) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for tasks that are to be dropped. Returns none once the batcher stops
  // and no more will come.
  std::vector<BatchTask> NextDropped() ABSL_LOCKS_EXCLUDED(mu_);
  // Leaves the tasks to drop_thread_.
  void Drop(std::vector<BatchTask> dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Tell the observer what waits of all classes, or of one.
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
  // Signalled when a batch may be due before run_at_, or the first of idle_ is
  // displaced.
  server::SteadyCondVar run_wake_;
  // Signalled when a task may be dropped before drop_at_.
  server::SteadyCondVar drop_wake_;
  // Signalled when the first of idle_ has left. It has no timeout, so the
  // threads behind the first sleep until then.
  absl::CondVar first_wake_;
  BatchQueue queue_ ABSL_GUARDED_BY(mu_);
  std::vector<BatchTask> dropped_ ABSL_GUARDED_BY(mu_);  // For drop_thread_.
  // The threads that are free, the one that has been free longest first. It
  // waits for the next batch, the others wait to be the first.
  std::deque<int> idle_ ABSL_GUARDED_BY(mu_);
  // By thread: the start of its batch; InfiniteFuture() while it runs none.
  std::vector<absl::Time> running_since_ ABSL_GUARDED_BY(mu_);
  // The times at which the thread that waits for a batch, and drop_thread_,
  // wake without a signal; InfinitePast() while they do not wait.
  absl::Time run_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time drop_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time wait_reported_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool emptied_ ABSL_GUARDED_BY(mu_) = false;  // No task waits or will.

  // Last: they start once everything above exists.
  std::thread drop_thread_;
  std::vector<std::thread> run_threads_;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCHER_H_
