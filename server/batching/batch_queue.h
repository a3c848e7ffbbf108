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

// The interval at which the queue looks for cancelled tasks, because nothing
// signals a cancellation. Until then a cancelled task takes up room, but it
// never runs.
inline constexpr absl::Duration kCancelPeriod = absl::Milliseconds(50);

struct BatchOptions : ScheduleOptions {
  // The maximum number and total bytes of waiting images, including images
  // still to be decoded. Higher limits absorb longer bursts. However, an image
  // that waits beyond its deadline is wasted work.
  int max_queue_items = 1024;
  int64_t max_queue_bytes = 512 << 20;
  // The share of the queue, and of the time before a deadline, that one client
  // may use alone, from 0.5 to 1. The rest stays free for other clients. See
  // server::ClientShares.
  double client_share = 1;
  // The name under which versions of a model share turns on the device. If
  // empty, the queue shares with no other version.
  std::string model;
};

struct Batch {
  // Tasks of one key, at most max_batch_size.
  std::vector<BatchTask> tasks;
  // Tasks removed without running. They expired, were cancelled, or could not
  // end in time.
  std::vector<BatchTask> dropped;
  BatchTrigger trigger = BatchTrigger::kFull;
  BatchKey key;
  uint64_t number = 0;  // Identifies the batch in Ran().
};

// The estimates of one key, and the recent mean time between its arrivals.
struct KeyProfile {
  BatchKey key;
  BatchCurve curve;
  absl::Duration gap;
};

// Decides which tasks form the next batch and when the batch is due. Tasks of a
// batch have the same BatchKey. Decide() chooses the key, the number of tasks
// and the moment. ClientTurns chooses the order of the tasks: clients take
// turns, and each client's earliest deadline goes first. A batch of one
// priority class is filled up with tasks of other classes.
//
// The queue learns how long batches take. It drops tasks that would end too
// late even if they ran now, because running them would make all other tasks
// late, too. If no other client waits for the device, it runs a smaller batch
// to keep urgent tasks in time.
//
// The queue has no clock and no thread. Callers pass the time, which must never
// fall. Thread-compatible.
class BatchQueue {
 public:
  // At most `slots` batches run concurrently on `devices`, which must outlive
  // the queue. If `devices` is empty, the queue has a device of its own.
  explicit BatchQueue(const BatchOptions& options, int slots = 1,
                      std::vector<const DeviceTurns::Member*> devices = {});

  // Sets task.submitted to `now`.
  void Push(BatchTask task, absl::Time now);

  // Removes and returns the tasks whose deadline is not after `now`. Also
  // removes cancelled tasks, at most once per kCancelPeriod.
  std::vector<BatchTask> TakeDropped(absl::Time now);

  // Drops tasks as TakeDropped() does. Then returns the next batch if one is
  // due at `now`, or nothing if no task left the queue. `tasks` is empty if all
  // due tasks were dropped. Otherwise a call of Ran() must follow. A slot must
  // be free. `waited` is how long the batch waited for other models. `device`
  // is where it will run, or null for the first device.
  std::optional<Batch> PopBatch(absl::Time now,
                                absl::Duration waited = absl::ZeroDuration(),
                                const DeviceTurns::Member* device = nullptr);

  struct BatchDuration {
    absl::Duration predicted;  // Zero if there was no estimate.
    absl::Duration measured;
  };
  // Reports that the batch `number` ended at `now`. The queue learns nothing
  // from the duration of a failed batch. Ignores a number that is not running.
  BatchDuration Ran(uint64_t number, absl::Time now, bool failed = false);

  // Makes every task due at once from now on.
  void Drain() { draining_ = true; }

  // Returns when the next batch is due if no other task arrives.
  // InfinitePast() if one is due at `now`, InfiniteFuture() if no task waits.
  absl::Time Due(absl::Time now) const;
  // The earliest deadline of all tasks; InfiniteFuture() if there is none.
  absl::Time NextDeadline() const { return waiting_.NextDeadline(); }

  // Predicts when a request admitted at `now` would be answered. The cost is
  // O(keys * log(tasks)).
  AdmissionEstimate Estimate(const AdmissionRequest& request,
                             absl::Time now) const;
  // Predicts how long a new client's task would wait for its batch. The task
  // has class kNormal and the key of the last batch.
  absl::Duration Wait(absl::Time now) const;
  // The number of clients with images waiting for the queue's first device. It
  // counts the clients of all queues on the device.
  int active_clients() const;
  // How long the slots will take for all waiting tasks.
  absl::Duration Backlog() const;

  // The estimates of how long batches take. Import() earlier measurements here.
  BatchProfile& profile() { return profile_; }
  const BatchProfile& profile() const { return profile_; }

  // The profiles of all keys. Copies everything, so it should be called rarely.
  std::vector<KeyProfile> KeyProfiles(absl::Time now) const;

  int size() const { return waiting_.size(); }
  // The number of the client's tasks in all classes.
  int CountOf(absl::string_view client) const;
  // The waiting tasks of one priority.
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
    std::optional<absl::Duration> trial_cost;  // Set if it is a trial.
    const DeviceTurns::Member* device = nullptr;
    BatchCharge charge;
  };

  // Returns the predicted cost of a batch, always more than zero. A batch of an
  // unknown key costs as much as the longest known batch.
  absl::Duration Cost(const BatchKey& key, int images) const;
  LineId LineOn(const DeviceTurns::Member& device, const BatchKey& key,
                server::Priority priority) const;
  // Tells the devices which task of the client is the most urgent in the line.
  void SetFirst(const BatchKey& key, server::Priority priority,
                const std::string& client);
  BatchTask Take(const WaitingTasks::TaskId& id);
  // Returns a key's tasks as Decide() sees them. The class `priority` must have
  // waiting tasks.
  WaitingLine LineOf(const BatchKey& key, server::Priority priority,
                     absl::Time now) const;
  // Returns up to `count` tasks of a key in the order of their turns on the
  // device. The tasks of class `first` come before other tasks.
  std::vector<WaitingTasks::TaskId> FirstTasks(
      const DeviceTurns::Member& device, const BatchKey& key,
      server::Priority first, int count) const;
  // Moves tasks of the batch's key into `batch`, as many as decided. The tasks
  // of class `first` come first. Tasks that end in time go to `tasks`, and the
  // others to `dropped`. Charges `tasks` to their clients.
  BatchCharge Fill(const DeviceTurns::Member& device, server::Priority first,
                   const Decision& decision, absl::Time now, Batch* batch);
  // Charges a batch of the tasks `ids` to their clients. The tasks must still
  // be waiting.
  BatchCharge Charge(const DeviceTurns::Member& device,
                     const std::vector<WaitingTasks::TaskId>& ids) const;
  // Returns how much more device time a trial that takes `took` uses than
  // batches of the best size would.
  absl::Duration TrialCost(const Running& trial, absl::Duration took) const;
  // Whether the tasks of all keys arrive about as fast as the slots compute
  // full batches, or faster.
  bool IsBusy(absl::Time now) const;
  // Whether a task of the key waits or runs. Its batch will then show how long
  // batches of the key take.
  bool IsUsed(const BatchKey& key) const;
  // Predicts how many more clients than now will wait soon. The prediction is
  // the number of clients that have come recently.
  double NewClients(absl::Time now) const;
  // Returns the recent average of the number of waiting clients. `clients` is
  // their number at `now`.
  double UsualClients(absl::Time now, int clients) const;
  // Tasks of a line that run before a request of the same class.
  struct Turns {
    int earlier = 0;  // Tasks before the request's images.
    int all = 0;      // Tasks before the client's last image.
  };
  // If the queue `is_busy`, other clients are expected to send more meanwhile.
  Turns TurnsOf(const WaitingTasks::Line& line, const BatchCurve& curve,
                const AdmissionRequest& request, const Urgency& limit,
                double new_clients, bool is_busy) const;

  const BatchOptions options_;
  const int slots_;
  BatchProfile profile_;
  WaitingTasks waiting_;
  std::unique_ptr<DeviceTurns>
      own_turns_;  // Null unless the queue has its own device.
  std::unique_ptr<DeviceTurns::Member>
      own_device_;  // The queue's member of own_turns_.
  std::vector<const DeviceTurns::Member*> devices_;
  std::map<uint64_t, Running> running_;  // By batch number.
  absl::Duration turn_wait_;             // See AdmissionState.
  // The cost of trials that the time of other batches has not yet paid for. No
  // trial starts before it is zero.
  absl::Duration trial_debt_;
  uint64_t batches_ = 0;      // Batches so far.
  BatchKey last_key_;         // Key of the batch that left last.
  double usual_clients_ = 0;  // UsualClients() at clients_counted_.
  absl::Time clients_counted_ = absl::InfinitePast();
  absl::Time cancels_taken_ = absl::InfinitePast();
  bool draining_ = false;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_
