#ifndef SFMAMBA_TESTS_SERVER_BATCHING_BATCH_TASKS_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_BATCH_TASKS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/batching/device_turns.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {

// A delay that is longer than any test.
inline constexpr absl::Duration kNever = absl::Hours(1);

// Returns the devices of a batcher with `count` threads, one element for each
// thread. All elements point to the same device. Each call creates a new
// device, which no other batcher uses. At most `count` turns exist on the
// device at a time, so all threads can run batches concurrently.
inline std::vector<DeviceTurns*> Threads(int count) {
  static auto* const devices = new std::list<DeviceTurns>;  // Never destroyed.
  return std::vector<DeviceTurns*>(count, &devices->emplace_back(count));
}
inline std::vector<DeviceTurns*> OneThread() { return Threads(1); }

inline BatchOptions Options(int max_batch_size,
                            absl::Duration max_queue_delay) {
  BatchOptions options;
  options.max_batch_size = max_batch_size;
  options.max_queue_delay = max_queue_delay;
  // In this mode, a batch waits for more tasks even if few tasks arrived
  // before. In kLatency mode, the wait depends on earlier arrivals.
  options.mode = BatchMode::kThroughput;
  return options;
}

// The outcome of one task.
struct Answer {
  absl::Notification done;
  absl::Status status;

  absl::Status Wait() {
    WaitFor(done, "a task's answer");
    return status;
  }
};

inline BatchTask MakeTask(Answer& answer,
                          absl::Time deadline = absl::InfiniteFuture()) {
  BatchTask task;
  task.image.height = task.image.width = 2;
  task.image.pixels = std::vector<uint8_t>(12);
  task.deadline = deadline;
  task.done = [&answer](absl::StatusOr<model::Result> result,
                        const BatchInfo&) {
    answer.status = std::move(result).status();
    answer.done.Notify();  // Aborts if called twice.
  };
  return task;
}

inline void AnswerAll(Batch batch) {
  for (BatchTask& task : batch.tasks) task.done(model::Result(), BatchInfo());
}

// Returns a MakeRun for a batcher whose threads call `run` for each batch. All
// batches succeed.
inline Batcher::MakeRun OnEachThread(std::function<void(Batch)> run) {
  return [run](int) {
    return [run](Batch batch) {
      run(std::move(batch));
      return Batcher::Ran();
    };
  };
}

// A clock that advances only when the test calls Advance().
class FakeClock {
 public:
  Batcher::Clock clock() {
    return [this] { return absl::FromUnixNanos(nanos_.load()); };
  }
  absl::Time Now() { return absl::FromUnixNanos(nanos_.load()); }
  void Advance(absl::Duration duration) {
    nanos_ += absl::ToInt64Nanoseconds(duration);
  }

 private:
  std::atomic<int64_t> nanos_{1'000'000'000};
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_BATCH_TASKS_H_
