#include "model/engine/slot_thread.h"

#include <utility>

namespace sfmamba::engine {

SlotThread::SlotThread(const std::function<std::unique_ptr<BatchSlot>()>& make)
    : thread_([this] { Loop(); }) {
  try {
    Do([&] { slot_ = make(); });
  } catch (...) {
    Stop();
    throw;
  }
}

SlotThread::~SlotThread() {
  Do([this] { slot_.reset(); });
  Stop();
}

absl::Status SlotThread::Run(absl::Span<const model::ModelInput> images,
                             absl::Span<model::Result> results,
                             model::RunInfo* info) {
  absl::Status status;
  Do([&] { status = slot_->Run(images, results, info); });
  return status;
}

void SlotThread::Do(const std::function<void()>& work) {
  std::packaged_task<void()> task(work);
  std::future<void> done = task.get_future();
  {
    absl::MutexLock lock(&mu_);
    task_ = std::move(task);
  }
  done.get();
}

void SlotThread::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void SlotThread::Loop() {
  for (;;) {
    std::packaged_task<void()> task = Take();
    if (!task.valid()) return;
    task();
  }
}

std::packaged_task<void()> SlotThread::Take() {
  absl::MutexLock lock(&mu_);
  const auto is_due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return task_.valid() || stopping_;
  };
  mu_.Await(absl::Condition(&is_due));
  return std::exchange(task_, {});
}

}  // namespace sfmamba::engine
