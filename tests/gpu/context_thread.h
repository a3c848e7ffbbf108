#ifndef SFMAMBA_TESTS_GPU_CONTEXT_THREAD_H_
#define SFMAMBA_TESTS_GPU_CONTEXT_THREAD_H_

#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "model/execution_context.h"
#include "model/vision_model.h"

namespace sfmamba {

// A thread that owns one of a model's contexts, like a batch thread of the
// server. The destructor waits until the started work has ended.
class ContextThread {
 public:
  using Work = std::function<absl::Status(model::ExecutionContext& context)>;

  // `model` must outlive the thread.
  ContextThread(model::VisionModel& model, int index);
  ~ContextThread();

  // Starts `work` on the thread. The future gets the status of `work`, or the
  // error with which the context could not be made. May be called only after
  // the previous work has ended.
  std::future<absl::Status> Start(Work work) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Do(Work work) { return Start(std::move(work)).get(); }

 private:
  using Task = std::packaged_task<absl::Status(model::ExecutionContext*)>;

  void Loop(model::VisionModel& model, int index);  // The body of thread_.
  // Waits for the next task and returns it. Returns an invalid task if the
  // thread must stop.
  Task Take() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status made_;  // Written by thread_ before it takes the first task.
  absl::Mutex mu_;
  Task task_ ABSL_GUARDED_BY(mu_);  // Invalid if there is none.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // The last member, because the thread uses all others.
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_CONTEXT_THREAD_H_
