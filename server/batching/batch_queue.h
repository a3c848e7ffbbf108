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

// Cancellations are not signalled, so the queue polls at this interval. Until
// then a cancelled task takes room, but it never runs.
inline constexpr absl::Duration kCancelPeriod = absl::Milliseconds(50);

struct BatchOptions : ScheduleOptions {
  // How many images and bytes may wait, including images still to be decoded.
  // Larger limits absorb longer bursts, but an image that waits beyond its
  // deadline is lost work.
  int max_queue_items = 1024;
  int64_t max_queue_bytes = 512 << 20;
  // The part of the queue, and of the time before a deadline, that a client
  // alone may fill, from 0.5 to 1. The rest stays free for the next client. See
  // server::ClientShares.
  double client_share = 1;
  // Its versions share the device's turns. Empty: another one each time.
  std::string model;
};

struct Batch {
  // All of one key, at most max_batch_size.
  std::vector<BatchTask> tasks;
  // Tasks taken out unrun: expired, cancelled, or not to be answered in time.
  std::vector<BatchTask> dropped;
  BatchTrigger trigger = BatchTrigger::kFull;
  BatchKey key;
  uint64_t number = 0;  // For Ran().
};

// What is known of a key's batches, and the mean time between its arrivals
// lately.
struct KeyProfile {
  BatchKey key;
  BatchCurve curve;
  absl::Duration gap;
};

// Decides which tasks form the next batch, and when it is due. Tasks with the
// same BatchKey share batches. Which key comes next, how many of its tasks and
// when is Decide()'s rule. Whose tasks come first, between keys and within one,
// is the rule of ClientTurns: between clients turns, within a client the
// earliest deadline first. A class's batch is filled up with other classes'
// tasks of its key.
//
// It learns how long batches take, and gives tasks back unrun that would end
// too late even if they ran now: running them would make all others late, too.
// If no other client waits for the device, a smaller batch is run for the sake
// of urgent tasks.
//
// It has no clock and no thread: callers pass the time, which never falls.
// Thread-compatible.
class BatchQueue {
 public:
  // At most `slots` batches run concurrently, on `devices`, which outlive the
  // queue. Empty: it has a device alone.
  explicit BatchQueue(const BatchOptions& options, int slots = 1,
                      std::vector<const DeviceTurns::Member*> devices = {});

  // Sets task.submitted to `now`.
  void Push(BatchTask task, absl::Time now);

  // Removes and returns the tasks whose deadline is not after `now`. Those that
  // are cancelled, too, if they were not looked for within kCancelPeriod.
  std::vector<BatchTask> TakeDropped(absl::Time now);

  // Drops as TakeDropped() does, then returns the next batch if one is due at
  // `now`. Its `tasks` are empty if all that was due is dropped; Ran() must
  // follow otherwise. None if nothing left the queue. A slot must be free.
  // `waited` is how long the batch has waited for other models, and `device`,
  // the first if null, is where it will run.
  std::optional<Batch> PopBatch(absl::Time now,
                                absl::Duration waited = absl::ZeroDuration(),
                                const DeviceTurns::Member* device = nullptr);

  struct BatchDuration {
    absl::Duration predicted;  // Zero if nothing was known.
    absl::Duration measured;
  };
  // The batch `number` ended at `now`. How long it took says nothing of others
  // if it failed. Ignores a number that does not run.
  BatchDuration Ran(uint64_t number, absl::Time now, bool failed = false);

  // From now on every task is due at once.
  void Drain() { draining_ = true; }

  // The time at which the next batch is due if no other task arrives.
  // InfinitePast() if one is due at `now`, InfiniteFuture() if no task waits.
  absl::Time Due(absl::Time now) const;
  // The earliest deadline of all tasks; InfiniteFuture() if there is none.
  absl::Time NextDeadline() const { return waiting_.NextDeadline(); }

  // Predicts when a request would be answered if it were admitted at `now`. The
  // cost is O(keys * log(tasks)).
  AdmissionEstimate Estimate(const AdmissionRequest& request,
                             absl::Time now) const;
  // How long a task of class kNormal, of the key that ran last and of a client
  // that has no other, would wait for its batch.
  absl::Duration Wait(absl::Time now) const;
  // The clients whose images wait on the queue's first device, of all queues.
  int active_clients() const;
  // How long the slots will take for all that waits.
  absl::Duration Backlog() const;

  // How long batches take. Import() into it what is known beforehand.
  BatchProfile& profile() { return profile_; }
  const BatchProfile& profile() const { return profile_; }

  // By key. Copies everything, for those who look seldom.
  std::vector<KeyProfile> KeyProfiles(absl::Time now) const;

  int size() const { return waiting_.size(); }
  // The client's tasks of all classes.
  int CountOf(absl::string_view client) const;
  // What waits of callers of the priority.
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

  // Returns the predicted cost of a batch, more than zero. An unknown key costs
  // as much as the longest batch that is known.
  absl::Duration Cost(const BatchKey& key, int images) const;
  LineId LineOn(const DeviceTurns::Member& device, const BatchKey& key,
                server::Priority priority) const;
  // Tells the devices the most urgent task of the client in the line.
  void SetFirst(const BatchKey& key, server::Priority priority,
                const std::string& client);
  BatchTask Take(const WaitingTasks::TaskId& id);
  // A key's tasks as Decide() sees them; of class `priority` some wait.
  WaitingLine LineOf(const BatchKey& key, server::Priority priority,
                     absl::Time now) const;
  // Up to `count` tasks of a key in the order of their turns on the device,
  // those of class `first` before others.
  std::vector<WaitingTasks::TaskId> FirstTasks(
      const DeviceTurns::Member& device, const BatchKey& key,
      server::Priority first, int count) const;
  // Moves as many tasks of the batch's key as decided into `batch`, first those
  // of the class `first`: tasks that end in time to `tasks`, others to
  // `dropped`.
  // Charges `tasks` to their clients.
  BatchCharge Fill(const DeviceTurns::Member& device, server::Priority first,
                   const Decision& decision, absl::Time now, Batch* batch);
  // Charges a batch of the tasks at `ids`, which still wait, to their clients.
  BatchCharge Charge(const DeviceTurns::Member& device,
                     const std::vector<WaitingTasks::TaskId>& ids) const;
  // How much more device time the trial takes than batches of the best size
  // would, if it takes `took`.
  absl::Duration TrialCost(const Running& trial, absl::Duration took) const;
  // Whether tasks of all keys arrive about as fast as the slots compute full
  // batches of them, or faster.
  bool IsBusy(absl::Time now) const;
  // Whether a task of the key waits or runs, which will show how long its
  // batches take.
  bool IsUsed(const BatchKey& key) const;
  // How many more clients than now are expected to wait soon: as many as have
  // come lately.
  double NewClients(absl::Time now) const;
  // Returns how many clients waited on average in the last seconds.
  double UsualClients(absl::Time now, int clients) const;
  // What is done of a line of the request's class before its client's turn.
  struct Turns {
    int earlier = 0;  // Tasks before the request's images.
    int all = 0;      // Tasks before the last of the client's.
  };
  // Others send more meanwhile if the queue `is_busy`.
  Turns TurnsOf(const WaitingTasks::Line& line, const BatchCurve& curve,
                const AdmissionRequest& request, const Urgency& limit,
                double new_clients, bool is_busy) const;

  const BatchOptions options_;
  const int slots_;
  BatchProfile profile_;
  WaitingTasks waiting_;
  std::unique_ptr<DeviceTurns> own_turns_;  // If it has a device alone,
  std::unique_ptr<DeviceTurns::Member> own_device_;  // and which.
  std::vector<const DeviceTurns::Member*> devices_;
  std::map<uint64_t, Running> running_;  // By number.
  absl::Duration turn_wait_;             // See AdmissionState.
  // What trials have cost and the time of other batches has not paid for. No
  // trial starts before it is zero.
  absl::Duration trial_debt_;
  uint64_t batches_ = 0;      // Batches so far.
  BatchKey last_key_;         // Key of the batch that left last.
  double usual_clients_ = 0;  // UsualClients() at the time clients_counted_.
  absl::Time clients_counted_ = absl::InfinitePast();
  absl::Time cancels_taken_ = absl::InfinitePast();
  bool draining_ = false;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_
