#include "tests/server/batching/simulator/fixed_queue.h"

#include <algorithm>
#include <utility>

namespace sfmamba::batching {

FixedQueue::FixedQueue(const BatchOptions& options, int /*slots*/)
    : options_(options), profile_(options.max_batch_size) {}

void FixedQueue::Push(BatchTask task, absl::Time now) {
  task.submitted = now;
  const BatchKey key = task.key;
  waiting_.Add(std::move(task), key, server::Priority::kHigh, /*order_by=*/now);
}

std::vector<BatchTask> FixedQueue::TakeDropped(absl::Time now) {
  return waiting_.TakeExpired(now);
}

absl::Time FixedQueue::LeaveAt(const WaitingTasks::KeyTasks& waiting) const {
  if (waiting.size() == 0) return absl::InfiniteFuture();
  if (waiting.size() >= options_.max_batch_size) return absl::InfinitePast();
  return waiting.arrivals.begin()->second + options_.max_queue_delay;
}

absl::Time FixedQueue::Due(absl::Time now) const {
  absl::Time due = absl::InfiniteFuture();
  for (const auto& [key, waiting] : waiting_.keys()) {
    due = std::min(due, LeaveAt(waiting));
  }
  return due <= now ? absl::InfinitePast() : due;
}

std::optional<Batch> FixedQueue::PopBatch(absl::Time now) {
  Batch batch;
  absl::Time oldest = absl::InfiniteFuture();
  for (const auto& [key, waiting] : waiting_.keys()) {
    if (LeaveAt(waiting) > now) continue;
    if (waiting.arrivals.begin()->second >= oldest) continue;
    oldest = waiting.arrivals.begin()->second;
    batch.key = key;
  }
  if (oldest == absl::InfiniteFuture()) return std::nullopt;
  const auto& tasks =
      waiting_.keys().at(batch.key).line(server::Priority::kHigh).tasks();
  while (!tasks.empty() &&
         static_cast<int>(batch.tasks.size()) < options_.max_batch_size) {
    const WaitingTasks::TaskId first = {batch.key, server::Priority::kHigh,
                                        tasks.begin()->first};
    batch.tasks.push_back(waiting_.Take(first));
  }
  return batch;
}

}  // namespace sfmamba::batching
