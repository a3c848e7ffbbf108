#ifndef SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
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
  observability::BatchTrigger trigger = observability::BatchTrigger::kFull;
};

// Decides which tasks form the next batch, and when it is due. Tasks of the
// same size form a bucket. A bucket is due when it holds max_batch_size tasks
// or its oldest task has waited max_queue_delay. If several buckets are due,
// the next batch is taken from the one that was served longest ago, its most
// urgent tasks first. So a due bucket waits for at most one batch of each other
// bucket.
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

  // Returns the next batch if one is due at `now`. It drops no task, so
  // TakeDropped() must be called before.
  std::optional<Batch> PopBatch(absl::Time now);

  // From now on every task is due at once.
  void Drain() { draining_ = true; }

  // The time at which the next batch is due if no other task arrives.
  // InfinitePast() if a bucket is full, InfiniteFuture() if no task waits.
  absl::Time Due() const;
  // The earliest deadline of all tasks; InfiniteFuture() if there is none.
  absl::Time NextDeadline() const;
  // The arrival of the oldest task; InfiniteFuture() if no task waits.
  absl::Time Oldest() const;

  int size() const { return size_; }
  int64_t bytes() const { return bytes_; }  // The images' bytes.

 private:
  using Size = std::pair<int, int>;                 // Height, width.
  using Urgency = std::pair<absl::Time, uint64_t>;  // Deadline, then arrival.
  struct Bucket {
    std::map<Urgency, BatchTask> tasks;  // Never empty.
    // The arrivals of the same tasks, the oldest first.
    std::map<uint64_t, absl::Time> arrivals;
    uint64_t turn = 0;  // The bucket with the smallest turn is served next.
  };

  absl::Time Due(const Bucket& bucket) const;
  bool full(const Bucket& bucket) const;
  // Removes the task at `it` and returns it. The bucket may then be empty.
  BatchTask Remove(Bucket& bucket, std::map<Urgency, BatchTask>::iterator it);

  const BatchOptions options_;
  std::map<Size, Bucket> buckets_;
  int size_ = 0;
  int64_t bytes_ = 0;
  uint64_t arrivals_ = 0;  // Tasks pushed so far.
  uint64_t turns_ = 0;     // Turns given so far.
  bool draining_ = false;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_QUEUE_H_
