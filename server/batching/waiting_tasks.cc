#include "server/batching/waiting_tasks.h"

#include <iterator>
#include <limits>

namespace sfmamba::batching {
namespace {

// Most empty keys kept, for what is known of their arrivals.
constexpr size_t kMaxKeys = 256;

}  // namespace

int WaitingTasks::Line::CountUntil(absl::Time order_by) const {
  // Most lines have all of their tasks on one side.
  if (tasks_.empty() || order_by < tasks_.begin()->first.first) return 0;
  if (tasks_.rbegin()->first.first <= order_by) return size();
  return static_cast<int>(
      ranks_.order_of_key({order_by, std::numeric_limits<uint64_t>::max()}));
}

void WaitingTasks::Insert(Line* line, const TaskId& id, BatchTask task) {
  line->ranks_.insert(id.urgency);
  line->tasks_.emplace(id.urgency, std::move(task));
  ++counts_[static_cast<int>(id.line)];
}

BatchTask WaitingTasks::Extract(Line* line, const TaskId& id) {
  const auto it = line->tasks_.find(id.urgency);
  BatchTask task = std::move(it->second);
  line->tasks_.erase(it);
  line->ranks_.erase(id.urgency);
  --counts_[static_cast<int>(id.line)];
  return task;
}

void WaitingTasks::Add(BatchTask task, const BatchKey& key,
                       server::Priority line, absl::Time order_by) {
  if (keys_.size() >= kMaxKeys && keys_.count(key) == 0) {
    for (auto it = keys_.begin(); it != keys_.end();) {
      it = it->second.size() == 0 ? keys_.erase(it) : std::next(it);
    }
  }
  KeyTasks& waiting = keys_[key];
  const uint64_t arrival = ++added_;
  const TaskId id = {key, line, {order_by, arrival}};
  waiting.gap.Arrived(task.submitted);
  waiting.arrivals.emplace_hint(waiting.arrivals.end(), arrival,
                                task.submitted);
  const int own = static_cast<int>(task.priority);
  arrivals_[own].emplace_hint(arrivals_[own].end(), arrival, task.submitted);
  bytes_[own] += task.image.bytes();
  if (task.deadline != absl::InfiniteFuture()) {
    deadlines_.emplace(std::make_pair(task.deadline, arrival), id);
  }
  if (line != server::Priority::kHigh) {
    promotions_[static_cast<int>(line)].emplace(
        std::make_pair(task.promote_at, arrival), id);
  }
  Insert(&LineAt(id), id, std::move(task));
}

BatchTask WaitingTasks::Take(const TaskId& id) {
  const uint64_t arrival = id.urgency.second;
  KeyTasks& waiting = keys_.at(id.key);
  BatchTask task = Extract(&LineAt(id), id);
  waiting.arrivals.erase(arrival);
  const int own = static_cast<int>(task.priority);
  arrivals_[own].erase(arrival);
  bytes_[own] -= task.image.bytes();
  deadlines_.erase({task.deadline, arrival});
  promotions_[static_cast<int>(id.line)].erase({task.promote_at, arrival});
  return task;
}

std::vector<BatchTask> WaitingTasks::TakeExpired(absl::Time now) {
  std::vector<BatchTask> expired;
  while (!deadlines_.empty() && deadlines_.begin()->first.first <= now) {
    expired.push_back(Take(TaskId(deadlines_.begin()->second)));
  }
  return expired;
}

std::vector<BatchTask> WaitingTasks::TakeCancelled() {
  std::vector<TaskId> ids;
  for (const auto& [key, waiting] : keys_) {
    for (int i = 0; i < server::kPriorityCount; ++i) {
      for (const auto& [urgency, task] : waiting.lines[i].tasks()) {
        if (task.is_cancelled()) {
          ids.push_back({key, static_cast<server::Priority>(i), urgency});
        }
      }
    }
  }
  std::vector<BatchTask> cancelled;
  for (const TaskId& id : ids) cancelled.push_back(Take(id));
  return cancelled;
}

void WaitingTasks::Promote(absl::Time now) {
  const auto& [high, normal, low] = arrivals_;
  if (!high.empty()) Promote(server::Priority::kNormal, now);
  if (!high.empty() || !normal.empty()) Promote(server::Priority::kLow, now);
}

void WaitingTasks::Promote(server::Priority priority, absl::Time now) {
  ByTime& promotions = promotions_[static_cast<int>(priority)];
  while (!promotions.empty() && promotions.begin()->first.first <= now) {
    TaskId id = promotions.begin()->second;
    promotions.erase(promotions.begin());
    BatchTask task = Extract(&LineAt(id), id);
    id.line = static_cast<server::Priority>(static_cast<int>(priority) - 1);
    const auto deadline = deadlines_.find({task.deadline, id.urgency.second});
    if (deadline != deadlines_.end()) deadline->second = id;
    Insert(&LineAt(id), id, std::move(task));
  }
}

absl::Time WaitingTasks::NextDeadline() const {
  return deadlines_.empty() ? absl::InfiniteFuture()
                            : deadlines_.begin()->first.first;
}

WaitingTasks::Waiting WaitingTasks::waiting(server::Priority priority) const {
  const int own = static_cast<int>(priority);
  const auto& arrivals = arrivals_[own];
  Waiting waiting;
  waiting.tasks = static_cast<int>(arrivals.size());
  waiting.bytes = bytes_[own];
  if (!arrivals.empty()) waiting.oldest = arrivals.begin()->second;
  return waiting;
}

int WaitingTasks::size() const {
  size_t size = 0;
  for (const auto& arrivals : arrivals_) size += arrivals.size();
  return static_cast<int>(size);
}

}  // namespace sfmamba::batching
