#include "server/base/fair_pool.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/base/thread_name.h"

namespace sfmamba::server {

FairPool::FairPool(Options options)
    : options_(std::move(options)), free_bytes_(options_.memory_bytes) {
  for (int i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this] { Loop(); });
  }
}

FairPool::~FairPool() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void FairPool::Run(Work work) {
  work.bytes = std::min(work.bytes, options_.memory_bytes);
  absl::MutexLock lock(&mu_);
  queue_.Push(std::move(work));
  changed_.Signal();
}

void FairPool::Expedite(uint64_t group) {
  absl::MutexLock lock(&mu_);
  queue_.Expedite(group);
}

absl::Duration FairPool::Wait(absl::Duration cost, Priority priority,
                              absl::Time deadline) const {
  absl::MutexLock lock(&mu_);
  return (queue_.WorkBefore(cost, priority, deadline) + cost) /
         options_.threads;
}

int FairPool::busy() const {
  absl::MutexLock lock(&mu_);
  return busy_;
}

int FairPool::queued() const {
  absl::MutexLock lock(&mu_);
  return queue_.size();
}

void FairPool::Loop() {
  NameThisThread(options_.name);
  absl::MutexLock lock(&mu_);
  while (true) {
    std::optional<Work> work = queue_.Pop(options_.clock(), free_bytes_);
    if (!work.has_value()) {
      if (stopping_ && queue_.size() == 0) return;
      changed_.Wait(&mu_);
      continue;
    }
    free_bytes_ -= work->bytes;
    ++busy_;
    mu_.Unlock();
    try {
      work->run();
    } catch (...) {
    }
    work->run = nullptr;  // What it captured goes outside the lock too.
    mu_.Lock();
    --busy_;
    queue_.Done(work->group);
    free_bytes_ += work->bytes;
    if (work->bytes > 0 && queue_.size() > 0) changed_.SignalAll();
  }
}

}  // namespace sfmamba::server
