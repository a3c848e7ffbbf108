#ifndef SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/batch_profile.h"
#include "server/batching/batch_task.h"
#include "server/observability/batch_trigger.h"

namespace sfmamba::batching {

struct BatchOptions {
  // The largest number of images in a batch. A larger one raises the throughput
  // as long as the device is not full, and the latency of every image.
  int max_batch_size = 8;
  // How long an image may wait for others while the device is free. A longer
  // delay makes larger batches under light load; with zero, a batch leaves as
  // soon as there is an image.
  absl::Duration max_queue_delay = absl::Milliseconds(2);
  // How many images and bytes may wait, including images still to be decoded.
  // Larger limits absorb longer bursts, but an image that waits beyond its
  // deadline is lost work.
  int max_queue_items = 1024;
  int64_t max_queue_bytes = 512 << 20;
  // What a client is told to wait when the queue is full.
  absl::Duration retry_after = absl::Milliseconds(100);
  // A task without a deadline is ordered as if its deadline were `patience`
  // after its arrival.
  absl::Duration patience = absl::Seconds(2);
};

struct Batch {
  std::vector<BatchTask> tasks;  // All of one bucket, the most urgent first.
  // Tasks taken out with them that could not have been answered in time.
  std::vector<BatchTask> late;
  observability::BatchTrigger trigger = observability::BatchTrigger::kFull;
};

// Decides which tasks form the next batch, and when it is due. Tasks of the
// same size form a bucket. A bucket is due when it holds max_batch_size tasks
// or its oldest task has waited max_queue_delay. If several buckets are due,
// the next batch is taken from the one that was served longest ago, its most
// urgent tasks first. So a due bucket waits for at most one batch of each other
// bucket.
//
// It learns how long batches take, and gives tasks back unrun that would end
// too late even if they ran now. Under overload the most urgent tasks are those
// that can no longer be answered in time: running them would make all others
// late, too. A bucket is also due when its most urgent task would become late
// by waiting.
//
// It has no clock and no thread: callers pass the time. Thread-compatible.
class BatchQueue {
 public:
  explicit BatchQueue(const BatchOptions& options);

  // Sets task.submitted to `now`.
  void Push(BatchTask task, absl::Time now);

  // Removes and returns the tasks that are cancelled or whose deadline is not
  // after `now`.
  std::vector<BatchTask> TakeDropped(absl::Time now);

  // Returns the next batch if one is due at `now`; `tasks` may then be empty,
  // if all were late. TakeDropped() must be called before.
  std::optional<Batch> PopBatch(absl::Time now);

  // A batch of `images` images of the bucket `height` x `width` took `duration`
  // and ended at `now`.
  void Ran(int height, int width, int images, absl::Duration duration,
           absl::Time now) {
    profile_.Record({height, width}, images, duration, now);
  }

  // From now on every task is due at once.
  void Drain() { draining_ = true; }

  // The time at which the next batch is due if no other task arrives.
  // InfinitePast() if a bucket is full, InfiniteFuture() if no task waits. It
  // may change with `now`, as estimates of how long batches take become old.
  absl::Time Due(absl::Time now) const;
  // The earliest deadline of all tasks; InfiniteFuture() if there is none.
  absl::Time NextDeadline() const;
  // The arrival of the oldest task; InfiniteFuture() if no task waits.
  absl::Time Oldest() const;

  int size() const { return size_; }
  int64_t bytes() const { return bytes_; }  // The images' bytes.

 private:
  using Size = BatchProfile::Size;
  using Urgency = std::pair<absl::Time, uint64_t>;  // Deadline, then arrival.
  struct Bucket {
    std::map<Urgency, BatchTask> tasks;  // Never empty.
    // The arrivals of the same tasks, the oldest first.
    std::map<uint64_t, absl::Time> arrivals;
    uint64_t turn = 0;  // The bucket with the smallest turn is served next.
  };

  absl::Time Due(const Size& size, const Bucket& bucket, absl::Time now) const;
  bool full(const Bucket& bucket) const;
  // Removes the task at `it` and returns it. The bucket may then be empty.
  BatchTask Remove(Bucket& bucket, std::map<Urgency, BatchTask>::iterator it);
  // Moves the most urgent tasks into `batch`: those that end in time to
  // `tasks`, those that do not to `late`.
  void Take(const Size& size, Bucket& bucket, absl::Time now, Batch* batch);

  const BatchOptions options_;
  BatchProfile profile_;
  std::map<Size, Bucket> buckets_;
  int size_ = 0;
  int64_t bytes_ = 0;
  uint64_t arrivals_ = 0;  // Tasks pushed so far.
  uint64_t turns_ = 0;     // Turns given so far.
  bool draining_ = false;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_
