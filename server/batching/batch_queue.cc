#include "server/batching/batch_queue.h"

#include <algorithm>
#include <iterator>

namespace sfmamba::batching {

using observability::BatchTrigger;

namespace {

// How long before it would become late a task is run: threads wake late.
constexpr absl::Duration kMargin = absl::Milliseconds(1);

}  // namespace

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
    if (Due(it->first, it->second, now) <= now &&
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
  Take(chosen->first, bucket, now, &batch);
  bucket.turn = ++turns_;
  if (bucket.tasks.empty()) buckets_.erase(chosen);
  return batch;
}

void BatchQueue::Take(const Size& size, Bucket& bucket, absl::Time now,
                      Batch* batch) {
  std::map<Urgency, BatchTask>& tasks = bucket.tasks;
  const auto end = [&](int images) {
    return now + profile_.Expected(size, images, now);
  };
  while (!tasks.empty()) {
    int count = std::min<int>(tasks.size(), options_.max_batch_size);
    // Where more wait than fit, a smaller batch for the sake of the urgent
    // would make more others late. Otherwise it is worth it.
    const bool crowded = tasks.size() > options_.max_batch_size;
    const absl::Time first_due = tasks.begin()->second.finish_by;
    while (!crowded && count > 1 && first_due < end(count)) --count;
    const absl::Time end_of_batch = end(count);
    bool any_late = false;
    auto it = tasks.begin();
    for (int i = 0; i < count; ++i) {
      const auto next = std::next(it);
      if (it->second.finish_by < end_of_batch) {
        batch->late.push_back(Remove(bucket, it));
        any_late = true;
      }
      it = next;
    }
    if (any_late) continue;  // Others take their places.
    while (count-- > 0) {
      batch->tasks.push_back(Remove(bucket, tasks.begin()));
    }
    return;
  }
}

bool BatchQueue::full(const Bucket& bucket) const {
  return bucket.tasks.size() >= options_.max_batch_size;
}

absl::Time BatchQueue::Due(const Size& size, const Bucket& bucket,
                           absl::Time now) const {
  if (draining_ || full(bucket)) return absl::InfinitePast();
  const BatchTask& first = bucket.tasks.begin()->second;
  const int count = static_cast<int>(bucket.tasks.size());
  const absl::Time latest =
      std::min(first.deadline,
               first.finish_by - profile_.Expected(size, count, now)) -
      kMargin;
  return std::min(bucket.arrivals.begin()->second + options_.max_queue_delay,
                  latest);
}

absl::Time BatchQueue::Due(absl::Time now) const {
  absl::Time due = absl::InfiniteFuture();
  for (const auto& [size, bucket] : buckets_) {
    due = std::min(due, Due(size, bucket, now));
  }
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
