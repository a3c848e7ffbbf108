#ifndef SFMAMBA_TESTS_SERVER_BATCHING_BLOCKING_RUN_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_BLOCKING_RUN_H_

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/batching/batcher.h"
#include "server/batching/schedule.h"
#include "tests/server/batching/batch_tasks.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {

// Blocks its first batch until Release(). Stores the sizes and triggers of all
// batches.
class BlockingRun {
 public:
  Batcher::MakeRun run() {
    return OnEachThread([this](Batch batch) {
      {
        absl::MutexLock lock(&mu_);
        sizes_.push_back(batch.tasks.size());
        triggers_.push_back(batch.trigger);
      }
      if (!started_.HasBeenNotified()) {
        started_.Notify();
        WaitFor(released_, "the test's leave to end the first batch",
                kTestPatience);
      }
      AnswerAll(std::move(batch));
    });
  }
  void WaitUntilStarted() { WaitFor(started_, "the first batch"); }
  void Release() { released_.Notify(); }
  std::vector<int> sizes() {
    absl::MutexLock lock(&mu_);
    return sizes_;
  }
  std::vector<BatchTrigger> triggers() {
    absl::MutexLock lock(&mu_);
    return triggers_;
  }

 private:
  absl::Notification started_;
  absl::Notification released_;
  absl::Mutex mu_;
  std::vector<int> sizes_ ABSL_GUARDED_BY(mu_);
  std::vector<BatchTrigger> triggers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_BLOCKING_RUN_H_
