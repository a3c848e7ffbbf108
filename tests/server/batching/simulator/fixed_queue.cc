#include "tests/server/batching/simulator/fixed_queue.h"

#include <algorithm>
#include <utility>

namespace sfmamba::batching {

FixedQueue::FixedQueue(
    const BatchOptions& options, int /*slots*/,
    const std::vector<const DeviceTurns::Member*>& /*devices*/)
    : options_(options), profile_(options.max_batch_size) {}

void FixedQueue::Push(BatchTask task, absl::Time now) {
  task.submitted = now;
  waiting_.Add(std::move(task), /*order_by=*/now);
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

std::optional<Batch> FixedQueue::PopBatch(
    absl::Time now, absl::Duration /*waited*/,
    const DeviceTurns::Member* /*device*/) {
  Batch batch;
  absl::Time oldest = absl::InfiniteFuture();
  for (const auto& [key, waiting] : waiting_.keys()) {
    if (LeaveAt(waiting) > now) continue;
    if (waiting.arrivals.begin()->second >= oldest) continue;
    oldest = waiting.arrivals.begin()->second;
    batch.key = key;
  }
  if (oldest == absl::InfiniteFuture()) return std::nullopt;
  const WaitingTasks::KeyTasks& waiting = waiting_.keys().at(batch.key);
  while (waiting.size() > 0 &&
         static_cast<int>(batch.tasks.size()) < options_.max_batch_size) {
    WaitingTasks::TaskId first = {batch.key, {}, {absl::InfiniteFuture(), 0}};
    for (const server::Priority priority : server::kPrioritiesInOrder) {
      const WaitingTasks::Line& line = waiting.line(priority);
      if (line.empty() || first.urgency < line.order().begin()->first) continue;
      first = {batch.key, priority, line.order().begin()->first};
    }
    batch.tasks.push_back(waiting_.Take(first));
  }
  return batch;
}

}  // namespace sfmamba::batching
