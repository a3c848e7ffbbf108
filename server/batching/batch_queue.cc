#include "server/batching/batch_queue.h"

#include <algorithm>
#include <iterator>

namespace sfmamba::batching {

using observability::BatchTrigger;

BatchQueue::BatchQueue(const BatchOptions& options) : options_(options) {}

void BatchQueue::Push(BatchTask task, absl::Time now) {
  task.submitted = now;
  const absl::Time due = task.deadline == absl::InfiniteFuture()
                             ? now + options_.patience
                             : task.deadline;
  const auto [it, is_new] =
      buckets_.try_emplace({task.bucket_height, task.bucket_width});
  Bucket& bucket = it->second;
  if (is_new) bucket.turn = ++turns_;
  const uint64_t arrival = ++arrivals_;
  ++size_;
  bytes_ += task.image.bytes();
  bucket.arrivals.emplace(arrival, now);
  bucket.tasks.emplace(Urgency(due, arrival), std::move(task));
}

BatchTask BatchQueue::Remove(Bucket& bucket,
                             std::map<Urgency, BatchTask>::iterator it) {
  BatchTask task = std::move(it->second);
  bucket.arrivals.erase(it->first.second);
  bucket.tasks.erase(it);
  --size_;
  bytes_ -= task.image.bytes();
  return task;
}

std::vector<BatchTask> BatchQueue::TakeDropped(absl::Time now) {
  std::vector<BatchTask> dropped;
  for (auto bucket = buckets_.begin(); bucket != buckets_.end();) {
    std::map<Urgency, BatchTask>& tasks = bucket->second.tasks;
    for (auto it = tasks.begin(); it != tasks.end();) {
      const auto next = std::next(it);
      if (it->second.deadline <= now || it->second.is_cancelled()) {
        dropped.push_back(Remove(bucket->second, it));
      }
      it = next;
    }
    bucket = tasks.empty() ? buckets_.erase(bucket) : std::next(bucket);
  }
  return dropped;
}

std::optional<Batch> BatchQueue::PopBatch(absl::Time now) {
  auto chosen = buckets_.end();
  for (auto it = buckets_.begin(); it != buckets_.end(); ++it) {
    if (Due(it->second) <= now &&
        (chosen == buckets_.end() || it->second.turn < chosen->second.turn)) {
      chosen = it;
    }
  }
  if (chosen == buckets_.end()) return std::nullopt;

  Bucket& bucket = chosen->second;
  Batch batch;
  batch.trigger = full(bucket) ? BatchTrigger::kFull
                  : draining_  ? BatchTrigger::kDrain
                               : BatchTrigger::kDelay;
  const int size = std::min<int>(bucket.tasks.size(), options_.max_batch_size);
  for (int i = 0; i < size; ++i) {
    batch.tasks.push_back(Remove(bucket, bucket.tasks.begin()));
  }
  bucket.turn = ++turns_;
  if (bucket.tasks.empty()) buckets_.erase(chosen);
  return batch;
}

bool BatchQueue::full(const Bucket& bucket) const {
  return bucket.tasks.size() >= options_.max_batch_size;
}

absl::Time BatchQueue::Due(const Bucket& bucket) const {
  if (draining_ || full(bucket)) return absl::InfinitePast();
  return bucket.arrivals.begin()->second + options_.max_queue_delay;
}

absl::Time BatchQueue::Due() const {
  absl::Time due = absl::InfiniteFuture();
  for (const auto& [size, bucket] : buckets_) due = std::min(due, Due(bucket));
  return due;
}

absl::Time BatchQueue::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [size, bucket] : buckets_) {
    for (const auto& [urgency, task] : bucket.tasks) {
      next = std::min(next, task.deadline);
    }
  }
  return next;
}

absl::Time BatchQueue::Oldest() const {
  absl::Time oldest = absl::InfiniteFuture();
  for (const auto& [size, bucket] : buckets_) {
    oldest = std::min(oldest, bucket.arrivals.begin()->second);
  }
  return oldest;
}

}  // namespace sfmamba::batching
