#ifndef SFMAMBA_SERVER_BATCHING_WAITING_TASKS_H_
#define SFMAMBA_SERVER_BATCHING_WAITING_TASKS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <ext/pb_ds/assoc_container.hpp>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/batch_key.h"
#include "server/batching/batch_task.h"
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

  // Infinite until two have arrived. Grows while nothing arrives.
  absl::Duration Mean(absl::Time now) const {
    return std::max(mean_, now - last_);
  }

 private:
  static constexpr double kWeight = 0.1;

  absl::Time last_ = absl::InfinitePast();
  absl::Duration mean_ = absl::InfiniteDuration();
};

// The tasks that wait for a batch, by key and priority class, in the order in
// which they would leave. It decides nothing.
//
// Adding and taking a task is O(log n), as is finding what has expired.
// Thread-compatible.
class WaitingTasks {
 public:
  // Tasks are ordered by order_by, equal ones by arrival.
  using Urgency = std::pair<absl::Time, uint64_t>;

  // The tasks of one key and class.
  class Line {
   public:
    bool empty() const { return tasks_.empty(); }
    int size() const { return static_cast<int>(tasks_.size()); }
    const std::map<Urgency, BatchTask>& tasks() const { return tasks_; }
    // How many tasks have an order_by that is not after `order_by`.
    int CountUntil(absl::Time order_by) const;
    // The order_by of the task that would leave after `tasks` others, which
    // must exist.
    absl::Time OrderAfter(int tasks) const {
      return ranks_.find_by_order(tasks)->first;
    }

   private:
    friend class WaitingTasks;
    using Ranks =
        __gnu_pbds::tree<Urgency, __gnu_pbds::null_type, std::less<Urgency>,
                         __gnu_pbds::rb_tree_tag,
                         __gnu_pbds::tree_order_statistics_node_update>;

    std::map<Urgency, BatchTask> tasks_;
    Ranks ranks_;  // The keys of tasks_.
  };

  // The tasks of one key.
  struct KeyTasks {
    std::array<Line, server::kPriorityCount> lines;  // By Priority.
    // The arrivals of the same tasks, the oldest first.
    std::map<uint64_t, absl::Time> arrivals;
    ArrivalGap gap;

    const Line& line(server::Priority priority) const {
      return lines[static_cast<int>(priority)];
    }
    int size() const { return static_cast<int>(arrivals.size()); }
  };

  // The tasks of callers of one priority.
  struct Waiting {
    int tasks = 0;
    int64_t bytes = 0;  // The images'.
    // The arrival of the oldest; InfiniteFuture() if no task waits.
    absl::Time oldest = absl::InfiniteFuture();
  };

  // Where a task waits.
  struct TaskId {
    BatchKey key;
    server::Priority line;
    Urgency urgency;
  };

  // `task.submitted` and `task.promote_at` must be set. The task waits in the
  // line `line` of `key`.
  void Add(BatchTask task, const BatchKey& key, server::Priority line,
           absl::Time order_by);
  // Removes the task at `id`, which must exist, and returns it.
  BatchTask Take(const TaskId& id);

  // Removes and returns the tasks whose deadline is not after `now`.
  std::vector<BatchTask> TakeExpired(absl::Time now);
  // Removes and returns the cancelled tasks. Looks at every task.
  std::vector<BatchTask> TakeCancelled();
  // Moves tasks whose promote_at is not after `now` one class up, each at most
  // once. It does so only while tasks of callers of a higher class wait: among
  // themselves a class's tasks keep their order.
  void Promote(absl::Time now);

  // The earliest deadline of all tasks; InfiniteFuture() if there is none.
  absl::Time NextDeadline() const;

  // May hold keys without tasks, for their arrivals.
  const std::map<BatchKey, KeyTasks>& keys() const { return keys_; }
  // The tasks in the lines of a class, of all keys.
  int count(server::Priority priority) const {
    return counts_[static_cast<int>(priority)];
  }
  int size() const;
  Waiting waiting(server::Priority priority) const;

 private:
  using ByTime = std::map<std::pair<absl::Time, uint64_t>, TaskId>;

  Line& LineAt(const TaskId& id) {
    return keys_.at(id.key).lines[static_cast<int>(id.line)];
  }
  void Promote(server::Priority priority, absl::Time now);
  void Insert(Line* line, const TaskId& id, BatchTask task);
  BatchTask Extract(Line* line, const TaskId& id);

  std::map<BatchKey, KeyTasks> keys_;
  // Arrivals of all tasks, by their own priority.
  std::array<std::map<uint64_t, absl::Time>, server::kPriorityCount> arrivals_;
  std::array<int64_t, server::kPriorityCount> bytes_ = {};
  ByTime deadlines_;  // The tasks that have one.
  // When tasks may move up, by class.
  std::array<ByTime, server::kPriorityCount> promotions_;
  std::array<int, server::kPriorityCount> counts_ = {};  // By line.
  uint64_t added_ = 0;                                   // Tasks so far.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_WAITING_TASKS_H_
