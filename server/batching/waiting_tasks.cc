#include "server/batching/waiting_tasks.h"

#include <iterator>

namespace sfmamba::batching {
namespace {

// If there are this many batch keys, the next new key removes all keys without
// tasks. Until then, keys without tasks stay, because the times between their
// arrivals are still useful.
constexpr size_t kMaxKeys = 256;

}  // namespace

const WaitingTasks::Tasks& WaitingTasks::Line::Of(
    absl::string_view client) const {
  static const auto* const none = new Tasks;  // Never destroyed.
  const auto found = clients_.find(client);
  return found == clients_.end() ? *none : found->second;
}

WaitingTasks::TaskId WaitingTasks::Add(BatchTask task, absl::Time order_by) {
  if (keys_.size() >= kMaxKeys && keys_.count(task.key) == 0) {
    for (auto it = keys_.begin(); it != keys_.end();) {
      it = it->second.size() == 0 ? keys_.erase(it) : std::next(it);
    }
  }
  KeyTasks& waiting = keys_[task.key];
  const uint64_t arrival = ++added_;
  const TaskId id = {task.key, task.priority, {order_by, arrival}};
  waiting.gap.Arrived(task.submitted);
  waiting.arrivals.emplace_hint(waiting.arrivals.end(), arrival,
                                task.submitted);
  const int own = static_cast<int>(task.priority);
  arrivals_[own].emplace_hint(arrivals_[own].end(), arrival, task.submitted);
  bytes_[own] += task.image.bytes();
  if (task.deadline != absl::InfiniteFuture()) {
    deadlines_.emplace(std::make_pair(task.deadline, arrival), id);
  }
  Line& line = LineAt(id);
  Tasks& tasks = line.clients_[task.client()];
  const auto added = tasks.emplace(id.urgency, std::move(task)).first;
  line.order_.insert({id.urgency, &added->second});
  return id;
}

BatchTask WaitingTasks::Take(const TaskId& id) {
  const uint64_t arrival = id.urgency.second;
  Line& line = LineAt(id);
  const auto client = line.clients_.find(line.task(id.urgency).client());
  line.order_.erase(id.urgency);
  BatchTask task = std::move(client->second.extract(id.urgency).mapped());
  if (client->second.empty()) line.clients_.erase(client);
  keys_.at(id.key).arrivals.erase(arrival);
  const int own = static_cast<int>(task.priority);
  arrivals_[own].erase(arrival);
  bytes_[own] -= task.image.bytes();
  deadlines_.erase({task.deadline, arrival});
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
      for (const auto& [urgency, task] : waiting.lines[i].order()) {
        if (task->is_cancelled()) {
          ids.push_back({key, static_cast<server::Priority>(i), urgency});
        }
      }
    }
  }
  std::vector<BatchTask> cancelled;
  for (const TaskId& id : ids) cancelled.push_back(Take(id));
  return cancelled;
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
