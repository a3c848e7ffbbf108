#ifndef SFMAMBA_TESTS_SERVER_BATCHING_NUMBERED_TASKS_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_NUMBERED_TASKS_H_

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/batch_queue.h"

// Makes numbered tasks for tests of BatchQueue. The tests set the time.
namespace sfmamba::batching {

inline const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

inline absl::Time At(int milliseconds) {
  return kStart + absl::Milliseconds(milliseconds);
}

// Makes a task that is identified by its number.
inline BatchTask MakeTask(int id, absl::Time deadline = absl::InfiniteFuture(),
                          int side = 224) {
  BatchTask task;
  task.key = {side, side, ImageType::kFloat32};
  task.image.values = {static_cast<float>(id)};
  task.deadline = deadline;
  return task;
}

inline int Id(const BatchTask& task) { return task.image.values[0]; }

inline std::vector<int> Ids(const std::vector<BatchTask>& tasks) {
  std::vector<int> ids;
  for (const BatchTask& task : tasks) ids.push_back(Id(task));
  return ids;
}

inline std::vector<int> Ids(const std::optional<Batch>& batch) {
  return batch.has_value() ? Ids(batch->tasks) : std::vector<int>();
}

// Adds up the waiting tasks of all priorities.
inline WaitingTasks::Waiting AllWaiting(const BatchQueue& queue) {
  WaitingTasks::Waiting all;
  for (const server::Priority priority : server::kPrioritiesInOrder) {
    const WaitingTasks::Waiting one = queue.waiting(priority);
    all.tasks += one.tasks;
    all.bytes += one.bytes;
    all.oldest = std::min(all.oldest, one.oldest);
  }
  return all;
}

// Returns the key of the tasks that MakeTask() makes.
inline BatchKey Key(int side = 224) {
  return {side, side, ImageType::kFloat32};
}

// Makes the queue learn that batches of `images` images take `milliseconds`.
inline void Teach(BatchQueue* queue, int images, double milliseconds,
                  int side = 224, absl::Time now = kStart) {
  for (int i = 0; i < 50; ++i) {
    queue->profile().Record(Key(side), images, absl::Milliseconds(milliseconds),
                            now);
  }
}

inline BatchOptions Options(int max_batch_size, int max_delay_milliseconds) {
  BatchOptions options;
  options.max_batch_size = max_batch_size;
  options.max_queue_delay = absl::Milliseconds(max_delay_milliseconds);
  // In this mode, the wait does not depend on earlier arrivals.
  options.mode = BatchMode::kThroughput;
  return options;
}

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_NUMBERED_TASKS_H_
