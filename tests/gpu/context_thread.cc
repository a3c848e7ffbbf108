#include "tests/gpu/context_thread.h"

#include <utility>

#include "absl/status/statusor.h"

namespace sfmamba {

ContextThread::ContextThread(model::VisionModel& model, int index)
    : thread_([this, &model, index] { Loop(model, index); }) {}

ContextThread::~ContextThread() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

std::future<absl::Status> ContextThread::Start(Work work) {
  Task task([this, work = std::move(work)](model::ExecutionContext* context) {
    return context != nullptr ? work(*context) : made_;
  });
  std::future<absl::Status> status = task.get_future();
  absl::MutexLock lock(&mu_);
  task_ = std::move(task);
  return status;
}

void ContextThread::Loop(model::VisionModel& model, int index) {
  auto context = model.MakeContext(index);
  made_ = context.status();
  while (true) {
    Task task = Take();
    if (!task.valid()) return;
    task(context.ok() ? context->get() : nullptr);
  }
}

ContextThread::Task ContextThread::Take() {
  absl::MutexLock lock(&mu_);
  const auto is_due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return task_.valid() || stopping_;
  };
  mu_.Await(absl::Condition(&is_due));
  return std::exchange(task_, {});
}

}  // namespace sfmamba
