#include "server/batching/waiting_tasks.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace sfmamba::batching {
namespace {

// So many keys are remembered while none of their tasks waits.
constexpr size_t kMaxBuckets = 256;

absl::Time PromoteAt(const BatchTask& task, absl::Time order_by) {
  return task.submitted + (order_by - task.submitted) / 2;
}

}  // namespace

int WaitingTasks::Line::CountUntil(absl::Time order_by) const {
  return static_cast<int>(
      ranks_.order_of_key({order_by, std::numeric_limits<uint64_t>::max()}));
}

void WaitingTasks::Insert(Line* line, const Place& place, BatchTask task) {
  line->ranks_.insert(place.urgency);
  line->tasks_.emplace(place.urgency, std::move(task));
  ++counts_[static_cast<int>(place.line)];
}

BatchTask WaitingTasks::Extract(Line* line, const Place& place) {
  const auto it = line->tasks_.find(place.urgency);
  BatchTask task = std::move(it->second);
  line->tasks_.erase(it);
  line->ranks_.erase(place.urgency);
  --counts_[static_cast<int>(place.line)];
  return task;
}

void WaitingTasks::Add(BatchTask task, const BatchKey& key, Priority line,
                       absl::Time order_by) {
  if (buckets_.size() >= kMaxBuckets && buckets_.count(key) == 0) {
    for (auto it = buckets_.begin(); it != buckets_.end();) {
      it = it->second.size() == 0 ? buckets_.erase(it) : std::next(it);
    }
  }
  Bucket& bucket = buckets_[key];
  const uint64_t arrival = ++added_;
  const Place place = {key, line, {order_by, arrival}};
  bucket.gap.Arrived(task.submitted);
  bucket.arrivals.emplace(arrival, task.submitted);
  arrivals_.emplace(arrival, task.submitted);
  bytes_ += task.image.bytes();
  if (task.deadline != absl::InfiniteFuture()) {
    deadlines_.emplace(std::make_pair(task.deadline, arrival), place);
  }
  if (line != Priority::kHigh) {
    promotions_[static_cast<int>(line)].emplace(
        std::make_pair(PromoteAt(task, order_by), arrival), place);
  }
  ++callers_[static_cast<int>(task.priority)];
  Insert(&LineAt(place), place, std::move(task));
}

BatchTask WaitingTasks::Take(const Place& place) {
  const auto& [order_by, arrival] = place.urgency;
  Bucket& bucket = buckets_.at(place.key);
  BatchTask task = Extract(&LineAt(place), place);
  bucket.arrivals.erase(arrival);
  arrivals_.erase(arrival);
  deadlines_.erase({task.deadline, arrival});
  promotions_[static_cast<int>(place.line)].erase(
      {PromoteAt(task, order_by), arrival});
  --callers_[static_cast<int>(task.priority)];
  bytes_ -= task.image.bytes();
  return task;
}

std::vector<BatchTask> WaitingTasks::TakeExpired(absl::Time now) {
  std::vector<BatchTask> expired;
  while (!deadlines_.empty() && deadlines_.begin()->first.first <= now) {
    expired.push_back(Take(Place(deadlines_.begin()->second)));
  }
  return expired;
}

std::vector<BatchTask> WaitingTasks::TakeCancelled() {
  std::vector<Place> places;
  for (const auto& [key, bucket] : buckets_) {
    for (int i = 0; i < kPriorities; ++i) {
      for (const auto& [urgency, task] : bucket.lines[i].tasks()) {
        if (task.is_cancelled()) {
          places.push_back({key, static_cast<Priority>(i), urgency});
        }
      }
    }
  }
  std::vector<BatchTask> cancelled;
  for (const Place& place : places) cancelled.push_back(Take(place));
  return cancelled;
}

void WaitingTasks::Promote(absl::Time now) {
  const auto& [high, normal, low] = callers_;
  if (high > 0) Promote(Priority::kNormal, now);
  if (high + normal > 0) Promote(Priority::kLow, now);
}

void WaitingTasks::Promote(Priority priority, absl::Time now) {
  ByTime& promotions = promotions_[static_cast<int>(priority)];
  while (!promotions.empty() && promotions.begin()->first.first <= now) {
    Place place = promotions.begin()->second;
    promotions.erase(promotions.begin());
    BatchTask task = Extract(&LineAt(place), place);
    place.line = static_cast<Priority>(static_cast<int>(priority) - 1);
    const auto deadline =
        deadlines_.find({task.deadline, place.urgency.second});
    if (deadline != deadlines_.end()) deadline->second = place;
    Insert(&LineAt(place), place, std::move(task));
  }
}

absl::Time WaitingTasks::NextDeadline() const {
  return deadlines_.empty() ? absl::InfiniteFuture()
                            : deadlines_.begin()->first.first;
}

absl::Time WaitingTasks::Oldest() const {
  return arrivals_.empty() ? absl::InfiniteFuture() : arrivals_.begin()->second;
}

}  // namespace sfmamba::batching
