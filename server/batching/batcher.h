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
// a turn, which is the right to run one batch on the device. The thread that
// has been idle longest takes the next batch, unless other models occupy the
// thread's device. An additional thread drops tasks that are cancelled or reach
// BatchTask::deadline while they wait.
//
// Thread-safe. Submit() never blocks. Each task's `done` is called exactly
// once. If the task runs, its Run calls `done`. If not, the batcher calls
// `done` with one of these errors:
// - RESOURCE_EXHAUSTED if the queue is full
// - DEADLINE_EXCEEDED if the task is in no batch by BatchTask::deadline, or if
//   its batch is predicted to end after BatchTask::finish_by
// - CANCELLED if the task is cancelled
// - UNAVAILABLE if the batcher is stopping
// The destructor refuses new tasks, runs the waiting tasks, and joins the
// threads.
class Batcher {
 public:
  // The result that a Run (a function declared below) returns for one batch.
  struct Ran {
    // True if the batch succeeded. The duration of a failed batch does not
    // change the estimates.
    bool succeeded = true;
    // Answers the last image of the batch. The Run itself has already answered
    // all other images. The batcher calls this function on the same thread,
    // after it has recorded the end of the batch. `idle` is true if no other
    // batch is due. May be null if the Run has answered all images.
    absl::AnyInvocable<void(bool idle)> answer_last;
  };
  // A function that runs the batches of one thread. A Run is created, called
  // and destroyed only on its thread. During each call, the thread has a turn
  // on its device.
  using Run = absl::AnyInvocable<Ran(Batch)>;
  // Creates the Run of a thread when the thread starts. This may take seconds,
  // during which batches wait. All threads call this function concurrently.
  using MakeRun = std::function<Run(int thread)>;
  // Observes the queue. The batcher calls these methods while it holds its
  // lock, so they must be short.
  class Observer {
   public:
    virtual ~Observer() = default;
    // Reports the waiting tasks of one priority.
    virtual void QueueChanged(server::Priority priority,
                              const WaitingTasks::Waiting& waiting) = 0;
    // Reports three predictions. `wait` is how long a new client's image of
    // priority NORMAL would wait for its batch. `backlog` is how long all
    // waiting tasks will take. `active_clients` is the number of clients that
    // wait for the device. Called at intervals while images arrive. Also called
    // when a batch has ended or images were dropped.
    virtual void WaitPredicted(absl::Duration wait, absl::Duration backlog,
                               int active_clients) = 0;
    virtual void BatchEnded(const BatchQueue::BatchDuration& times) = 0;
  };
  using Clock = std::function<absl::Time()>;

  // Starts one thread for each element of `devices`, which may contain a device
  // several times. The devices must outlive the batcher.
  Batcher(const BatchOptions& options, const std::vector<DeviceTurns*>& devices,
          MakeRun make_run, Observer* observer = nullptr,
          Clock clock = base::SteadyNow);
  ~Batcher();

  // Returns the room for waiting images. A task's reservation is released when
  // the task leaves the queue.
  QueueRoom& room() { return room_; }
  const QueueRoom& room() const { return room_; }

  void Submit(BatchTask task) ABSL_LOCKS_EXCLUDED(mu_);

  // Drops expired tasks, then returns the result of BatchQueue::Estimate(). The
  // request's images must already have a reservation. Sets `request.decoding`,
  // `own_decoding` and `other_clients`, so the caller need not.
  AdmissionEstimate Estimate(AdmissionRequest request) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the current estimates of batch durations.
  std::vector<BatchTime> ExportProfile() const ABSL_LOCKS_EXCLUDED(mu_);
  // See BatchQueue::KeyProfiles().
  std::vector<KeyProfile> KeyProfiles() const ABSL_LOCKS_EXCLUDED(mu_);
  void ImportProfile(const std::vector<BatchTime>& times)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns when the oldest running batch was passed to its Run. Returns
  // InfiniteFuture() if no batch runs.
  absl::Time RunningSince() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A batch, and the turn (the right to run one batch) in which it runs.
  struct Ready {
    Batch batch;
    DeviceTurns::Turn turn;
  };

  void RunLoop(int thread);  // The body of each of run_threads_.
  void DropLoop();           // The body of drop_thread_.

  // Records the end of a batch. Returns true if no other batch is due.
  bool BatchEnded(int thread, uint64_t number, bool succeeded)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for the next batch and for a turn to run this batch. Also ends
  // `last`, the turn of the thread's previous batch. If the thread must first
  // wait until a batch is due, `last` ends before this wait. If a batch is
  // already due for the thread, `last` ends in the same step in which the
  // thread asks for its next turn (see DeviceTurns::Member::TryTake()). Returns
  // nullopt if the batcher is stopping and no task is left.
  std::optional<Ready> NextWork(int thread,
                                std::optional<DeviceTurns::Turn> last)
      ABSL_LOCKS_EXCLUDED(mu_);
  // This is the first step of NextWork(). Waits until `thread` is the first of
  // idle_ and a batch is due. If the batcher is stopping and no task is left,
  // removes the thread from idle_ and returns false.
  bool WaitUntilDue(int thread) ABSL_LOCKS_EXCLUDED(mu_);
  // This is the second step of NextWork(). Returns a turn on the thread's
  // device and ends `last`. If the thread must wait for the turn, the thread
  // leaves idle_ meanwhile. Another thread with an idle device can then take
  // the batch.
  DeviceTurns::Turn TakeTurn(int thread, std::optional<DeviceTurns::Turn> last)
      ABSL_LOCKS_EXCLUDED(mu_);
  // This is the third step of NextWork(). Removes the thread from idle_ and
  // returns the next batch. Returns nullopt if no batch is due any more, for
  // example because another thread has taken the batch. `since` is the time at
  // which the thread began to wait for its turn.
  std::optional<Batch> TakeBatch(int thread, absl::Time since)
      ABSL_LOCKS_EXCLUDED(mu_);
  void LeaveIdle(int thread) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits until tasks were dropped, and returns these tasks. Returns an empty
  // vector if the batcher is stopping and no more tasks will come.
  std::vector<BatchTask> NextDropped() ABSL_LOCKS_EXCLUDED(mu_);
  // Releases the tasks' reservations and passes the tasks to drop_thread_,
  // which answers the tasks with an error.
  void Drop(std::vector<BatchTask> dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The first function reports the waiting tasks of all priority classes to the
  // observer. The second function reports the tasks of one class.
  void ReportQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReportQueue(server::Priority priority)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReportWait(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const MakeRun make_run_;
  const Clock clock_;
  Observer* const observer_;  // May be null.
  using Members = std::map<DeviceTurns*, std::unique_ptr<DeviceTurns::Member>>;
  const Members members_;
  std::vector<DeviceTurns::Member*> devices_;  // The device of each thread.
  QueueRoom room_;

  mutable absl::Mutex mu_;
  // The first thread of idle_ waits for run_wake_. Signalled when the next
  // batch is due earlier than run_at_, and when another thread has become the
  // first of idle_. Also signalled when the batcher stops.
  server::SteadyCondVar run_wake_;
  // drop_thread_ waits for drop_wake_. Signalled when a new task needs a check
  // before drop_at_, for example because its deadline is earlier. Also
  // signalled when tasks are added to dropped_ or emptied_ becomes true.
  server::SteadyCondVar drop_wake_;
  // All threads of idle_ except the first wait for first_wake_. Signalled when
  // a thread leaves idle_, because another thread may then be the first.
  absl::CondVar first_wake_;
  BatchQueue queue_ ABSL_GUARDED_BY(mu_);
  // The dropped tasks that drop_thread_ must answer.
  std::vector<BatchTask> dropped_ ABSL_GUARDED_BY(mu_);
  // The idle threads, in the order in which they became idle. The first thread
  // waits for the next batch, and the others wait to become the first. A thread
  // that had to wait for its turn on the device comes back as the first.
  std::deque<int> idle_ ABSL_GUARDED_BY(mu_);
  // The time at which each thread's batch started, or InfiniteFuture() if the
  // thread runs no batch.
  std::vector<absl::Time> running_since_ ABSL_GUARDED_BY(mu_);
  // While the first thread of idle_ waits for a batch, run_at_ is the end of
  // the wait. At all other times, run_at_ is InfinitePast().
  absl::Time run_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  // While drop_thread_ waits for expired tasks, drop_at_ is the end of the
  // wait. At all other times, drop_at_ is InfinitePast().
  absl::Time drop_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time wait_reported_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // True if the batcher is stopping and no task waits any more.
  bool emptied_ ABSL_GUARDED_BY(mu_) = false;

  // The threads are the last members, because they use all members above.
  std::thread drop_thread_;
  std::vector<std::thread> run_threads_;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCHER_H_
