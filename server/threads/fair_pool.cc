#include "server/threads/fair_pool.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/threads/thread_name.h"

namespace sfmamba::server {

FairPool::FairPool(Options options)
    : options_(std::move(options)),
      queue_(options_.round),
      free_bytes_(options_.memory_bytes) {
  const bool has_spare = options_.long_piece != absl::InfiniteDuration();
  for (int i = 0; i < options_.threads + has_spare; ++i) {
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
  WakeOne();
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

bool FairPool::MayStart() const {
  return busy_ < options_.threads ||
         (busy_ == options_.threads && long_ == busy_);
}

void FairPool::WakeOne() {
  if (queue_.size() > 0 && MayStart()) changed_.Signal();
}

std::optional<Work> FairPool::Next() {
  if (!MayStart()) return std::nullopt;
  const absl::Duration longest =
      busy_ < options_.threads ? absl::InfiniteDuration() : options_.long_piece;
  return queue_.Pop(options_.clock(), free_bytes_, longest);
}

void FairPool::Loop() {
  NameThisThread(options_.name);
  absl::MutexLock lock(&mu_);
  while (true) {
    std::optional<Work> work = Next();
    if (!work.has_value()) {
      if (stopping_ && queue_.size() == 0) {
        // Wakes the threads that still wait for work, so that they end, too.
        changed_.SignalAll();
        return;
      }
      changed_.Wait(&mu_);
      continue;
    }
    const bool is_long = work->cost > options_.long_piece;
    free_bytes_ -= work->bytes;
    ++busy_;
    long_ += is_long;
    WakeOne();
    mu_.Unlock();
    try {
      work->run();
    } catch (...) {
    }
    work->run = nullptr;  // Destroys the captures while mu_ is unlocked.
    mu_.Lock();
    --busy_;
    long_ -= is_long;
    queue_.Done(work->group);
    free_bytes_ += work->bytes;
  }
}

}  // namespace sfmamba::server
