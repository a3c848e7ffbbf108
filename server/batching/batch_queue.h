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
  // Images a batch at most. More raises the throughput while the device is not
  // yet full, and the latency of every image in the batch.
  int max_batch_size = 8;
  // How long an image may wait for batch mates while the device is free. Longer
  // makes larger batches under light load; zero sends what is there at once.
  absl::Duration max_queue_delay = absl::Milliseconds(2);
  // Images and bytes that may wait, those still to be decoded included. Larger
  // rides out longer bursts; what waits longer than its deadline is lost work.
  int max_queue_items = 1024;
  int64_t max_queue_bytes = 512 << 20;
  // What a client is told to wait when the queue is full.
  absl::Duration retry_after = absl::Milliseconds(100);
  // A task without deadline is ordered as if due so long after it came.
  absl::Duration patience = absl::Seconds(2);
};

struct Batch {
  std::vector<BatchTask> tasks;  // Of one bucket, the most urgent first.
  observability::BatchTrigger trigger = observability::BatchTrigger::kFull;
};

// Which tasks form the next batch, and when it is due. Tasks of one bucket size
// form a bucket; it is due when it holds max_batch_size tasks or its oldest
// has waited max_queue_delay. Of the due buckets the one served longest ago
// gives its most urgent tasks, so a due bucket waits for one batch of each
// other at most.
//
// Told the time; no clock, no thread. Thread-compatible.
class BatchQueue {
 public:
  explicit BatchQueue(const BatchOptions& options);

  // Sets task.submitted to `now`.
  void Push(BatchTask task, absl::Time now);

  // Takes out the tasks that are cancelled or whose deadline is not after
  // `now`.
  std::vector<BatchTask> TakeDropped(absl::Time now);

  // The next batch, if one is due at `now`. TakeDropped() comes first: nothing
  // is dropped here.
  std::optional<Batch> PopBatch(absl::Time now);

  // From now on every task is due at once.
  void Drain() { draining_ = true; }

  // When the next batch is due if nothing else comes; InfinitePast() if one is
  // full, InfiniteFuture() if nothing waits.
  absl::Time Due() const;
  // The earliest deadline of all; InfiniteFuture() if there is none.
  absl::Time NextDeadline() const;
  // When the oldest task came; InfiniteFuture() if nothing waits.
  absl::Time Oldest() const;

  int size() const { return size_; }
  int64_t bytes() const { return bytes_; }  // Of the images.

 private:
  using Size = std::pair<int, int>;                 // Height, width.
  using Urgency = std::pair<absl::Time, uint64_t>;  // When due, then arrival.
  struct Bucket {
    std::map<Urgency, BatchTask> tasks;  // Never empty.
    std::map<uint64_t, absl::Time>
        arrivals;       // Of the same tasks, oldest first.
    uint64_t turn = 0;  // Buckets with smaller numbers are served before.
  };

  absl::Time Due(const Bucket& bucket) const;
  bool full(const Bucket& bucket) const;
  // Removes the task at `it` and returns it; the bucket may be empty after.
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
