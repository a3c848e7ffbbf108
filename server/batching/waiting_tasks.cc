#include "server/batching/waiting_tasks.h"

#include <iterator>

namespace sfmamba::batching {
namespace {

// Most empty keys kept, for what is known of their arrivals.
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
  const int own = static_cast<int>(task.priority);
  bytes_[own] += task.image.bytes();
  Entry entry;
  entry.of_key =
      waiting.arrivals.insert(waiting.arrivals.end(), task.submitted);
  entry.of_class = arrivals_[own].insert(arrivals_[own].end(), task.submitted);
  entry.deadline = deadlines_.emplace(task.deadline, id);
  Line& line = LineAt(id);
  Tasks& tasks = line.clients_[task.client()];
  entry.task = &tasks.emplace(id.urgency, std::move(task)).first->second;
  line.order_.insert({id.urgency, entry});
  return id;
}

BatchTask WaitingTasks::Take(const TaskId& id) {
  Line& line = LineAt(id);
  const auto found = line.order_.find(id.urgency);
  const Entry entry = found->second;
  line.order_.erase(found);
  const auto client = line.clients_.find(entry.task->client());
  BatchTask task = std::move(client->second.extract(id.urgency).mapped());
  if (client->second.empty()) line.clients_.erase(client);
  const int own = static_cast<int>(task.priority);
  bytes_[own] -= task.image.bytes();
  keys_.at(id.key).arrivals.erase(entry.of_key);
  arrivals_[own].erase(entry.of_class);
  deadlines_.erase(entry.deadline);
  return task;
}

std::vector<BatchTask> WaitingTasks::TakeExpired(absl::Time now) {
  std::vector<BatchTask> expired;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    expired.push_back(Take(TaskId(deadlines_.begin()->second)));
  }
  return expired;
}

std::vector<BatchTask> WaitingTasks::TakeCancelled() {
  std::vector<TaskId> ids;
  for (const auto& [key, waiting] : keys_) {
    for (int i = 0; i < server::kPriorityCount; ++i) {
      for (const auto& [urgency, entry] : waiting.lines[i].order()) {
        if (entry.task->is_cancelled()) {
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
                            : deadlines_.begin()->first;
}

WaitingTasks::Waiting WaitingTasks::waiting(server::Priority priority) const {
  const int own = static_cast<int>(priority);
  const Arrivals& arrivals = arrivals_[own];
  Waiting waiting;
  waiting.tasks = static_cast<int>(arrivals.size());
  waiting.bytes = bytes_[own];
  if (!arrivals.empty()) waiting.oldest = arrivals.front();
  return waiting;
}

int WaitingTasks::size() const {
  size_t size = 0;
  for (const auto& arrivals : arrivals_) size += arrivals.size();
  return static_cast<int>(size);
}

}  // namespace sfmamba::batching
