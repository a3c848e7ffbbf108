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

// Computes the moving average of the time between arrivals of tasks.
// Thread-compatible.
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

  // Returns the average, or an infinite duration if fewer than two tasks have
  // arrived. If the last arrival is longer ago than the average, returns the
  // time since the last arrival.
  absl::Duration Mean(absl::Time now) const {
    return std::max(mean_, now - last_);
  }

 private:
  static constexpr double kWeight = 0.1;

  absl::Time last_ = absl::InfinitePast();
  absl::Duration mean_ = absl::InfiniteDuration();
};

// Stores the tasks that wait for a batch, by batch key, priority class and
// client. Makes no decisions.
//
// Adding a task, removing a task and finding expired tasks are O(log n).
// Thread-compatible.
class WaitingTasks {
 public:
  // A sorted map of tasks with the most urgent task first.
  using Tasks = std::map<Urgency, BatchTask>;

  // The tasks of one batch key and one priority class. See LineId.
  class Line {
   public:
    // A sorted map of tasks. It can also find the n-th task and the position of
    // a task.
    using Order =
        __gnu_pbds::tree<Urgency, const BatchTask*, std::less<Urgency>,
                         __gnu_pbds::rb_tree_tag,
                         __gnu_pbds::tree_order_statistics_node_update>;

    bool empty() const { return order_.empty(); }
    int size() const { return static_cast<int>(order_.size()); }
    // Returns the tasks of all clients, with the most urgent first.
    const Order& order() const { return order_; }
    const BatchTask& task(const Urgency& urgency) const {
      return *order_.find(urgency)->second;
    }
    // Returns the tasks of each client. The map has no client without tasks.
    const absl::flat_hash_map<std::string, Tasks>& clients() const {
      return clients_;
    }
    // Returns the client's tasks, or an empty map if there are none.
    const Tasks& Of(absl::string_view client) const;

   private:
    friend class WaitingTasks;

    absl::flat_hash_map<std::string, Tasks> clients_;
    Order order_;
  };

  // The tasks of one batch key.
  struct KeyTasks {
    std::array<Line, server::kPriorityCount> lines;  // Indexed by Priority.
    // Maps the number of each task of the key to the task's arrival time. The
    // oldest task is first, because it has the lowest number.
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
    int64_t bytes = 0;  // The size of the tasks' images.
    // The arrival of the oldest task, or InfiniteFuture() if no task waits.
    absl::Time oldest = absl::InfiniteFuture();
  };

  // Identifies a waiting task.
  struct TaskId {
    BatchKey key;
    server::Priority priority;
    Urgency urgency;
  };

  // Adds a task. `task.submitted` must be set. Tasks with an earlier `order_by`
  // are more urgent.
  TaskId Add(BatchTask task, absl::Time order_by);
  // Removes and returns the task at `id`. The task must exist.
  BatchTask Take(const TaskId& id);

  // Removes and returns the tasks whose deadline is at or before `now`.
  std::vector<BatchTask> TakeExpired(absl::Time now);
  // Removes and returns the cancelled tasks. The cost is linear in the number
  // of tasks.
  std::vector<BatchTask> TakeCancelled();

  // Returns the earliest deadline of all tasks, or InfiniteFuture() if no task
  // has a deadline.
  absl::Time NextDeadline() const;

  // Returns the tasks of all batch keys. A key without tasks stays in the map,
  // because the average time between its arrivals is still useful.
  const std::map<BatchKey, KeyTasks>& keys() const { return keys_; }
  int size() const;
  Waiting waiting(server::Priority priority) const;

 private:
  Line& LineAt(const TaskId& id) {
    return keys_.at(id.key).lines[static_cast<int>(id.priority)];
  }

  std::map<BatchKey, KeyTasks> keys_;
  // Maps the number of each task to the task's arrival time, separately for
  // each priority.
  std::array<std::map<uint64_t, absl::Time>, server::kPriorityCount> arrivals_;
  std::array<int64_t, server::kPriorityCount> bytes_ = {};
  // The tasks that have a deadline, sorted by deadline and then by task number.
  std::map<std::pair<absl::Time, uint64_t>, TaskId> deadlines_;
  uint64_t added_ = 0;  // The number of tasks added so far.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_WAITING_TASKS_H_
