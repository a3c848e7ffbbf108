// Measures the CPU time per image in a batcher, from Submit() to the answer,
// and the images per second. Several threads submit rounds of 256 images. A
// batch takes either no time, or a millisecond in which it does not use the
// CPU.

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "server/batching/batcher.h"
#include "server/batching/device_turns.h"

namespace sfmamba::batching {
namespace {

constexpr int kRound = 256;
constexpr int kImages = 1 << 18;  // In total.

// Returns the CPU time used so far, in microseconds.
double Used() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return 1e6 * (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

void SubmitRound(Batcher* batcher) {
  absl::BlockingCounter answers(kRound);
  for (int i = 0; i < kRound; ++i) {
    BatchTask task;
    task.deadline = task.finish_by = base::SteadyNow() + absl::Seconds(10);
    task.done = [&answers](absl::StatusOr<model::Result>, const BatchInfo&) {
      answers.DecrementCount();
    };
    batcher->Submit(std::move(task));
  }
  answers.Wait();
}

void Time(int threads, absl::Duration batch_time) {
  constexpr int kSlots = 3;
  DeviceTurns device(kSlots);
  BatchOptions options;
  options.max_batch_size = 128;
  options.max_queue_items = 1 << 20;
  Batcher batcher(options, std::vector<DeviceTurns*>(kSlots, &device),
                  [batch_time](int) -> Batcher::Run {
                    return [batch_time](Batch batch) {
                      absl::SleepFor(batch_time);
                      for (BatchTask& task : batch.tasks) {
                        task.done(model::Result(), BatchInfo());
                      }
                      return Batcher::Ran();
                    };
                  });
  const double used = Used();
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> submitters;
  for (int i = 0; i < threads; ++i) {
    submitters.emplace_back([&] {
      for (int n = 0; n < kImages / threads; n += kRound) SubmitRound(&batcher);
    });
  }
  for (std::thread& submitter : submitters) submitter.join();
  const double microseconds = std::chrono::duration<double, std::micro>(
                                  std::chrono::steady_clock::now() - start)
                                  .count();
  std::printf(
      "%d threads, batches of %.0f us: %.2f us an image, %.0f images/s\n",
      threads, absl::ToDoubleMicroseconds(batch_time),
      (Used() - used) / kImages, 1e6 * kImages / microseconds);
}

}  // namespace
}  // namespace sfmamba::batching

int main() {
  for (const absl::Duration batch_time :
       {absl::ZeroDuration(), absl::Milliseconds(1)}) {
    for (const int threads : {1, 2, 4, 8}) {
      sfmamba::batching::Time(threads, batch_time);
    }
  }
}
