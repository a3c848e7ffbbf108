#ifndef SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/batching/admission.h"
#include "server/batching/batch_curve.h"
#include "server/batching/batch_key.h"
#include "server/batching/batch_profile.h"
#include "server/batching/batch_task.h"
#include "server/batching/client_turns.h"
#include "server/batching/device_turns.h"
#include "server/batching/schedule.h"
#include "server/batching/waiting_tasks.h"
#include "server/shares/priority.h"

namespace sfmamba::batching {

// The queue looks for cancelled tasks at this interval, because a cancellation
// sends no signal. A cancelled task never runs, but it occupies memory until
// the queue finds it.
inline constexpr absl::Duration kCancelPeriod = absl::Milliseconds(50);

struct BatchOptions : ScheduleOptions {
  // The maximum number and total bytes of waiting images. Images that are still
  // being decoded count too. Higher limits absorb longer bursts, but more
  // images may then wait until their deadline has passed.
  int max_queue_items = 1024;
  int64_t max_queue_bytes = 512 << 20;
  // Limits how much a single client may use, so that a part stays free for
  // other clients. The value is from 0.5 to 1, and 1 means no limit. There are
  // two limits:
  // - The client's images may fill at most this fraction of the queue.
  // - If other clients send requests too, the device time for the client's
  //   images is also limited. A new request of the client is refused if all
  //   waiting images of the client, including the new images, would need too
  //   much device time. They may need at most this fraction of the time until
  //   the deadline of the new request.
  // For details, see server::ClientShares and Executor::Admit().
  double client_share = 1;
  // The name of the model. Queues with the same name, for example of several
  // versions, count as one model when clients take turns on the device. A queue
  // without a name counts as a separate model.
  std::string model;
};

struct Batch {
  // The tasks that run in this batch, at most max_batch_size. All tasks have
  // the batch key `key`.
  std::vector<BatchTask> tasks;
  // The tasks that left the queue without running, because they expired, were
  // cancelled or could not end in time.
  std::vector<BatchTask> dropped;
  BatchTrigger trigger = BatchTrigger::kFull;
  BatchKey key;
  // Identifies the batch in BatchQueue::Ran().
  uint64_t number = 0;
};

// The estimates for batches with one batch key (image size and type). `gap` is
// the recent mean time between arrivals of images with this key.
struct KeyProfile {
  BatchKey key;
  BatchCurve curve;
  absl::Duration gap;
};

// Decides which tasks form the next batch and when this batch is due. The tasks
// of a batch have the same BatchKey. Decide() chooses the key, the number of
// tasks and the time. ClientTurns chooses the order of the tasks. Clients take
// turns, and the most urgent task of each client goes first. If a batch of one
// priority class has room, tasks of other classes fill the batch.
//
// The queue learns how long batches take. The queue drops a task that would end
// too late even if it ran now. Running such a task would only delay other
// tasks. If no other client waits for the device, the queue may run a smaller
// batch, so that urgent tasks meet their deadlines.
//
// The queue has no clock and no thread. Callers pass the time, which must never
// decrease. Thread-compatible.
class BatchQueue {
 public:
  // At most `slots` batches run concurrently on `devices`. The devices must
  // outlive the queue. If `devices` is empty, the queue creates a device for
  // itself.
  explicit BatchQueue(const BatchOptions& options, int slots = 1,
                      std::vector<const DeviceTurns::Member*> devices = {});

  // Adds a task and sets `task.submitted` to `now`.
  void Push(BatchTask task, absl::Time now);

  // Removes and returns the tasks whose deadline is at or before `now`. Also
  // removes cancelled tasks, at most once per kCancelPeriod.
  std::vector<BatchTask> TakeDropped(absl::Time now);

  // Removes expired and cancelled tasks like TakeDropped(). Then removes the
  // tasks of the next batch if a batch is due at `now`. `device` is the device
  // that will run the batch. If `device` is null, the batch will run on the
  // first device. `waited` is how long the batch waited for other models.
  //
  // Returns nullopt if this call removed no task from the queue. Otherwise
  // returns the removed tasks. Batch::tasks is empty if no batch is due or all
  // due tasks were dropped. If Batch::tasks is not empty, the caller must run
  // the batch and then call Ran(). PopBatch() may be called only while fewer
  // than `slots` batches run.
  std::optional<Batch> PopBatch(absl::Time now,
                                absl::Duration waited = absl::ZeroDuration(),
                                const DeviceTurns::Member* device = nullptr);

  struct BatchDuration {
    // The predicted duration, or zero if there was no estimate.
    absl::Duration predicted;
    absl::Duration measured;
  };
  // Reports that the batch `number` ended at `now`. The duration of a failed
  // batch does not change the estimates. Ignores a batch that is not running.
  BatchDuration Ran(uint64_t number, absl::Time now, bool failed = false);

  // Makes every task due immediately, including tasks that arrive later.
  void Drain() { draining_ = true; }

  // Returns when the next batch is due if no other task arrives. Returns
  // InfinitePast() if a batch is due at `now`, and InfiniteFuture() if no task
  // waits.
  absl::Time Due(absl::Time now) const;
  // Returns the earliest deadline of all tasks, or InfiniteFuture() if no task
  // has a deadline.
  absl::Time NextDeadline() const { return waiting_.NextDeadline(); }

  // Predicts the times of a request that is admitted at `now`. Takes time
  // O(keys * log(tasks)).
  AdmissionEstimate Estimate(const AdmissionRequest& request,
                             absl::Time now) const;
  // Predicts how long a new client's task would wait for its batch. The task
  // has priority class kNormal and the batch key of the last batch.
  absl::Duration Wait(absl::Time now) const;
  // Returns the number of clients with waiting images in any queue on this
  // queue's first device. A client that waits in two priority classes counts
  // twice.
  int active_clients() const;
  // Returns the expected time that all slots together need for all waiting
  // tasks.
  absl::Duration Backlog() const;

  // Returns the estimates of batch durations. The caller may add earlier
  // measurements with Import().
  BatchProfile& profile() { return profile_; }
  const BatchProfile& profile() const { return profile_; }

  // Returns the profiles of all batch keys. Should be called rarely, because
  // each call copies all profiles.
  std::vector<KeyProfile> KeyProfiles(absl::Time now) const;

  int size() const { return waiting_.size(); }
  // Returns the number of the client's tasks in all priority classes.
  int CountOf(absl::string_view client) const;
  // Returns a summary of the waiting tasks of one priority.
  WaitingTasks::Waiting waiting(server::Priority priority) const {
    return waiting_.waiting(priority);
  }

 private:
  struct Running {
    BatchKey key;
    int images = 0;
    absl::Time start;
    absl::Duration waited;
    absl::Duration predicted;
    // The predicted TrialCost(). Set only if the batch is a trial.
    std::optional<absl::Duration> trial_cost;
    const DeviceTurns::Member* device = nullptr;
    BatchCharge charge;
  };

  // Returns the predicted device time of a batch of `images` images, which is
  // always more than zero. If the duration of batches with the batch key `key`
  // is unknown, returns the longest time that a batch of the best size takes
  // with another key.
  absl::Duration Cost(const BatchKey& key, int images) const;
  LineId LineOn(const DeviceTurns::Member& device, const BatchKey& key,
                server::Priority priority) const;
  // Tells all devices which of the client's tasks with this batch key and
  // priority is the most urgent. If no such task waits, the devices remove the
  // client from the line of this key and priority.
  void SetFirst(const BatchKey& key, server::Priority priority,
                const std::string& client);
  BatchTask Take(const WaitingTasks::TaskId& id);
  // Returns the input of Decide() for the waiting tasks with the batch key
  // `key`, in all priority classes. The first task of the result is the most
  // urgent task of the class `priority`. This class must have waiting tasks.
  WaitingLine LineOf(const BatchKey& key, server::Priority priority,
                     absl::Time now) const;
  // Returns up to `count` tasks with the batch key `key`, in the order of their
  // turns on the device. The tasks of class `first` come before other tasks.
  std::vector<WaitingTasks::TaskId> FirstTasks(
      const DeviceTurns::Member& device, const BatchKey& key,
      server::Priority first, int count) const;
  // Moves up to `decision.images` tasks with the batch key `batch->key` into
  // `batch`. Tasks of class `first` come first. Tasks that end in time go to
  // `batch->tasks`, and the others to `batch->dropped`. Charges the batch to
  // the clients of `batch->tasks` and returns this charge.
  BatchCharge Fill(const DeviceTurns::Member& device, server::Priority first,
                   const Decision& decision, absl::Time now, Batch* batch);
  // Charges the predicted device time of a batch to clients. The batch consists
  // of the tasks `ids`, which must still be waiting. Returns the charge.
  BatchCharge Charge(const DeviceTurns::Member& device,
                     const std::vector<WaitingTasks::TaskId>& ids) const;
  // Returns the extra device time of a trial, which is a batch that is larger
  // than the estimates recommend. `took` is the trial's duration. The result is
  // `took` minus the time that the same images need in batches of the best
  // size, or zero if this difference is negative.
  absl::Duration TrialCost(const Running& trial, absl::Duration took) const;
  // Returns true if tasks arrive so fast that full batches of them need most of
  // the slots' time.
  bool IsBusy(absl::Time now) const;
  // Returns true if a task with the batch key `key` waits or runs. The batch of
  // this task will then correct the estimates of the key.
  bool IsUsed(const BatchKey& key) const;
  // Returns how many further clients are expected to arrive soon. If more
  // clients wait now than in the recent average, the number of clients is
  // rising. It is then assumed to rise again by the same amount, so the result
  // is the current number minus the average. Otherwise the result is 0.
  double NewClients(absl::Time now) const;
  // Returns the recent average number of waiting clients. `clients` is the
  // number of clients that wait at `now`.
  double UsualClients(absl::Time now, int clients) const;
  // The result of TurnsOf(). It contains two predicted numbers of tasks in one
  // WaitingTasks::Line. Both may include tasks that other clients are expected
  // to send soon.
  struct Turns {
    // The number of tasks that run before the request's images.
    int earlier = 0;
    // The number of tasks that run until all admitted images of the request's
    // client are done. The client's waiting tasks are included. The request's
    // own images and images that are being decoded are not included.
    int all = 0;
  };
  // Predicts how many tasks of `line` run before the request's images, and how
  // many run until all images of the request's client are done. `limit` is the
  // urgency of the request's images. If these images join a batch of earlier
  // tasks, `limit` may be the urgency of the first task of this batch.
  // `new_clients` is the result of NewClients(). If `is_busy` is true, other
  // clients are expected to send more tasks before the request runs.
  Turns TurnsOf(const WaitingTasks::Line& line, const BatchCurve& curve,
                const AdmissionRequest& request, const Urgency& limit,
                double new_clients, bool is_busy) const;

  const BatchOptions options_;
  const int slots_;
  BatchProfile profile_;
  WaitingTasks waiting_;
  std::unique_ptr<DeviceTurns> own_turns_;  // Null if the queue shares devices.
  std::unique_ptr<DeviceTurns::Member>
      own_device_;  // The queue's member of own_turns_.
  std::vector<const DeviceTurns::Member*> devices_;
  std::map<uint64_t, Running> running_;  // Maps batch numbers to batches.
  // The average wait of a batch, see AdmissionState::turn_wait.
  absl::Duration turn_wait_;
  // The extra device time of past trials (see TrialCost()), minus a small part
  // of the time of other batches (see kTrialShare in batch_queue.cc). A trial
  // starts only if this debt is zero or less.
  absl::Duration trial_debt_;
  uint64_t batches_ = 0;  // The number of batches so far.
  BatchKey last_key_;     // The key of the last batch.
  // The value of UsualClients() at the last PopBatch(). The member
  // `clients_counted_` is the time of that PopBatch().
  double usual_clients_ = 0;
  absl::Time clients_counted_ = absl::InfinitePast();
  absl::Time cancels_taken_ = absl::InfinitePast();
  bool draining_ = false;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_
