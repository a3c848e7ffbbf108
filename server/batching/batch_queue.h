#ifndef SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/admission.h"
#include "server/batching/batch_curve.h"
#include "server/batching/batch_key.h"
#include "server/batching/batch_profile.h"
#include "server/batching/batch_task.h"
#include "server/batching/schedule.h"
#include "server/batching/waiting_tasks.h"
#include "server/shares/fair_shares.h"
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
  // A task without a deadline is ordered as if its deadline were `patience`
  // after the time at which all of its client that waits would be done, if
  // the clients took equal turns. So who sends much without deadlines makes
  // neither those wait who set one, nor those who send little.
  absl::Duration patience = absl::Seconds(2);
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
// when is Decide()'s rule; within a key the most urgent leave first. Priority
// classes share the device's time as server::kPriorityShares, and a class's
// batch is filled up with other classes' tasks of its key.
//
// Within a class the tasks are ordered by their deadlines. Those of a client
// that holds little, at most half of an equal part of what waits, are ordered
// as if theirs were the time at which all of the client's would be done if the
// clients took equal turns. So what others wait for, and that it takes longer
// than predicted, makes no task late of a client that sends little.
//
// It learns how long batches take, and gives tasks back unrun that would end
// too late even if they ran now. Under overload the most urgent tasks are those
// that can no longer be answered in time: running them would make all others
// late, too. Where nobody else would have to wait for it, a smaller batch is
// run for their sake.
//
// It has no clock and no thread: callers pass the time, which never falls.
// Thread-compatible.
class BatchQueue {
 public:
  // At most `slots` batches run concurrently.
  explicit BatchQueue(const BatchOptions& options, int slots = 1);

  // Sets task.submitted to `now`.
  void Push(BatchTask task, absl::Time now);

  // Removes and returns the tasks whose deadline is not after `now`. Those that
  // are cancelled, too, if they were not looked for within kCancelPeriod.
  std::vector<BatchTask> TakeDropped(absl::Time now);

  // The most urgent class that waits, about how long its batch takes, and the
  // time that its tasks are ordered by.
  struct Next {
    server::Priority priority = server::Priority::kNormal;
    absl::Duration cost;
    absl::Time order_by = absl::InfiniteFuture();
  };
  Next PeekNext(absl::Time now) const;

  // Drops as TakeDropped() does, then returns the next batch if one is due at
  // `now`. Its `tasks` are empty if all that was due is dropped; Ran() must
  // follow otherwise. None if nothing left the queue. A slot must be free.
  // `waited` is how long the batch has waited for other models.
  std::optional<Batch> PopBatch(absl::Time now,
                                absl::Duration waited = absl::ZeroDuration());

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
  // How long a task of class kNormal, of the key that ran last, would wait for
  // its batch if it were the least urgent of its class.
  absl::Duration Wait(absl::Time now) const;

  // How long batches take. Import() into it what is known beforehand.
  BatchProfile& profile() { return profile_; }
  const BatchProfile& profile() const { return profile_; }

  // By key. Copies everything, for those who look seldom.
  std::vector<KeyProfile> KeyProfiles(absl::Time now) const;

  int size() const { return waiting_.size(); }
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
  };

  // How long all slots take for `images` images of the key in full batches.
  absl::Duration TimeOf(const BatchKey& key, int64_t images) const;
  // The task's deadline, or what stands for it; see BatchOptions::patience.
  absl::Time DueBy(const BatchTask& task, absl::Time now) const;
  // A key's tasks as Decide() sees them; `priority`, of which some wait, says
  // which is the first.
  WaitingLine LineOf(const BatchKey& key, const WaitingTasks::KeyTasks& waiting,
                     server::Priority priority, absl::Time now) const;
  // What Decide() is to choose from for tasks of the class, and for each line
  // its key.
  std::vector<WaitingLine> Lines(server::Priority priority, absl::Time now,
                                 std::vector<BatchKey>* keys) const;
  // Moves as many tasks of the batch's key as decided into `batch`, first those
  // of the class `first`: tasks that end in time to `tasks`, others to
  // `dropped`.
  void Fill(server::Priority first, const Decision& decision, absl::Time now,
            Batch* batch);
  // How much more device time the trial takes than batches of the best size
  // would, if it takes `took`.
  absl::Duration TrialCost(const Running& trial, absl::Duration took) const;
  // Whether tasks of all keys arrive about as fast as the slots compute full
  // batches of them, or faster.
  bool IsBusy(absl::Time now) const;
  // Estimate() of a request whose tasks are ordered by `order_by`.
  AdmissionEstimate EstimateAt(const AdmissionRequest& request,
                               absl::Time order_by, absl::Time now) const;
  // Whether a task of the key waits or runs, which will show how long its
  // batches take.
  bool IsUsed(const BatchKey& key) const;
  // The order_by by which the batch of the request's last image is expected to
  // leave: its own, or that of the first task of a batch that it fills up.
  absl::Time LeavesAs(const AdmissionRequest& request, const BatchCurve& curve,
                      absl::Time order_by) const;
  // All classes, the one that is furthest behind its share first; of equal ones
  // the higher first.
  std::array<server::Priority, server::kPriorityCount> ClassesInTurn() const;
  // Charges a batch of the tasks at `ids`, which still wait, to their lines'
  // classes.
  void Charge(const BatchCurve& curve,
              const std::vector<WaitingTasks::TaskId>& ids);

  const BatchOptions options_;
  const int slots_;
  BatchProfile profile_;
  WaitingTasks waiting_;
  server::FairShares<server::Priority> shares_;  // Shares of the devices' time.
  std::map<uint64_t, Running> running_;          // By number.
  absl::Duration turn_wait_;                     // See AdmissionState.
  // What trials have cost and the time of other batches has not paid for. No
  // trial starts before it is zero.
  absl::Duration trial_debt_;
  uint64_t batches_ = 0;  // Batches so far.
  BatchKey last_key_;     // Key of the batch that left last.
  absl::Time cancels_taken_ = absl::InfinitePast();
  bool draining_ = false;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_
