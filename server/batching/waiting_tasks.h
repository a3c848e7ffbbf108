#ifndef SFMAMBA_SERVER_BATCHING_WAITING_TASKS_H_
#define SFMAMBA_SERVER_BATCHING_WAITING_TASKS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <ext/pb_ds/assoc_container.hpp>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/batching/batch_key.h"
#include "server/batching/batch_task.h"
#include "server/batching/client_turns.h"
#include "server/shares/priority.h"

namespace sfmamba::batching {

// Moving average of the time between arrivals. Thread-compatible.
class ArrivalGap {
 public:
  void Arrived(absl::Time now) {
    if (last_ != absl::InfinitePast()) {
      const absl::Duration gap = now - last_;
      mean_ = mean_ == absl::InfiniteDuration()
                  ? gap
                  : mean_ + kWeight * (gap - mean_);
    }
    last_ = now;
  }

  // Infinite until two tasks have arrived. Grows while no task arrives.
  absl::Duration Mean(absl::Time now) const {
    return std::max(mean_, now - last_);
  }

 private:
  static constexpr double kWeight = 0.1;

  absl::Time last_ = absl::InfinitePast();
  absl::Duration mean_ = absl::InfiniteDuration();
};

// Stores the tasks that wait for a batch, by key, priority class and client. It
// makes no decisions.
//
// Adding a task, taking a task and finding expired tasks are O(log n).
// Thread-compatible.
class WaitingTasks {
 public:
  // Sorted, the most urgent task first.
  using Tasks = std::map<Urgency, BatchTask>;

  // The tasks of one key and one priority class.
  class Line {
   public:
    // An ordered map that also finds the n-th task and a task's rank.
    using Order =
        __gnu_pbds::tree<Urgency, const BatchTask*, std::less<Urgency>,
                         __gnu_pbds::rb_tree_tag,
                         __gnu_pbds::tree_order_statistics_node_update>;

    bool empty() const { return order_.empty(); }
    int size() const { return static_cast<int>(order_.size()); }
    // The tasks of all clients, the most urgent first.
    const Order& order() const { return order_; }
    const BatchTask& task(const Urgency& urgency) const {
      return *order_.find(urgency)->second;
    }
    // The tasks of each client that has any.
    const absl::flat_hash_map<std::string, Tasks>& clients() const {
      return clients_;
    }
    // The client's tasks, or an empty map.
    const Tasks& Of(absl::string_view client) const;

   private:
    friend class WaitingTasks;

    absl::flat_hash_map<std::string, Tasks> clients_;
    Order order_;
  };

  // The tasks of one key.
  struct KeyTasks {
    std::array<Line, server::kPriorityCount> lines;  // By Priority.
    // The arrival times of the same tasks by number, the oldest first.
    std::map<uint64_t, absl::Time> arrivals;
    ArrivalGap gap;

    const Line& line(server::Priority priority) const {
      return lines[static_cast<int>(priority)];
    }
    int size() const { return static_cast<int>(arrivals.size()); }
  };

  // A summary of the waiting tasks of one priority.
  struct Waiting {
    int tasks = 0;
    int64_t bytes = 0;  // The bytes of their images.
    // The arrival of the oldest task; InfiniteFuture() if no task waits.
    absl::Time oldest = absl::InfiniteFuture();
  };

  // Identifies a waiting task.
  struct TaskId {
    BatchKey key;
    server::Priority priority;
    Urgency urgency;
  };

  // Adds a task. `task.submitted` must be set. The task's line is ordered by
  // `order_by`.
  TaskId Add(BatchTask task, absl::Time order_by);
  // Removes the task at `id`, which must exist, and returns it.
  BatchTask Take(const TaskId& id);

  // Removes and returns the tasks whose deadline is not after `now`.
  std::vector<BatchTask> TakeExpired(absl::Time now);
  // Removes and returns the cancelled tasks. Checks every task.
  std::vector<BatchTask> TakeCancelled();

  // The earliest deadline of all tasks; InfiniteFuture() if there is none.
  absl::Time NextDeadline() const;

  // May contain keys without tasks, to remember their arrivals.
  const std::map<BatchKey, KeyTasks>& keys() const { return keys_; }
  int size() const;
  Waiting waiting(server::Priority priority) const;

 private:
  Line& LineAt(const TaskId& id) {
    return keys_.at(id.key).lines[static_cast<int>(id.priority)];
  }

  std::map<BatchKey, KeyTasks> keys_;
  // The arrival times of all tasks, by priority and number.
  std::array<std::map<uint64_t, absl::Time>, server::kPriorityCount> arrivals_;
  std::array<int64_t, server::kPriorityCount> bytes_ = {};
  // The tasks that have a deadline.
  std::map<std::pair<absl::Time, uint64_t>, TaskId> deadlines_;
  uint64_t added_ = 0;  // Tasks added so far.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_WAITING_TASKS_H_
