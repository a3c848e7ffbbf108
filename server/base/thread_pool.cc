#include "server/base/thread_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/reasons.h"
#include "server/base/thread_name.h"

namespace sfmamba::server {

ThreadPool::ThreadPool(Options options) : options_(std::move(options)) {
  for (int i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this] { Loop(); });
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status ThreadPool::TryRun(absl::AnyInvocable<void()>&& fn) {
  absl::MutexLock lock(&mu_);
  if (queue_.size() >= options_.max_queued) {
    return QueueFull(
        absl::StrCat("all ", options_.max_queued, " places of the ",
                     options_.name, " queue are taken"),
        options_.retry_after);
  }
  queue_.push_back(std::move(fn));
  changed_.Signal();
  return absl::OkStatus();
}

int ThreadPool::busy() const {
  absl::MutexLock lock(&mu_);
  return busy_;
}

int ThreadPool::queued() const {
  absl::MutexLock lock(&mu_);
  return queue_.size();
}

void ThreadPool::Loop() {
  NameThisThread(options_.name);
  absl::MutexLock lock(&mu_);
  while (true) {
    while (queue_.empty() && !stopping_) changed_.Wait(&mu_);
    if (queue_.empty()) return;
    absl::AnyInvocable<void()> fn = std::move(queue_.front());
    queue_.pop_front();
    ++busy_;
    mu_.Unlock();
    try {
      fn();
    } catch (...) {
    }
    fn = nullptr;  // What it captured goes outside the lock too.
    mu_.Lock();
    --busy_;
  }
}

}  // namespace sfmamba::server
