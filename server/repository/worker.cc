#include "server/repository/worker.h"

#include <algorithm>
#include <utility>

#include "base/steady_clock.h"
#include "server/threads/thread_name.h"

namespace sfmamba::repository {

Worker::Worker(std::string name, size_t most_waiting, Routine routine)
    : name_(std::move(name)),
      most_waiting_(most_waiting),
      routine_(std::move(routine)),
      thread_([this] { Loop(); }) {}

Worker::~Worker() {
  Stop();
  thread_.join();
}

bool Worker::Push(Job job) {
  absl::MutexLock lock(&mu_);
  if (stopping_ || jobs_.size() >= most_waiting_) return false;
  jobs_.push_back(std::move(job));
  wake_.SignalAll();
  return true;
}

void Worker::Begin() {
  absl::MutexLock lock(&mu_);
  begun_ = true;
  wake_.SignalAll();
}

void Worker::Stop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
  wake_.SignalAll();
}

bool Worker::stopping() const {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

void Worker::Loop() {
  server::NameThisThread(name_);
  absl::Time next = absl::InfiniteFuture();  // When the routine is due.
  while (true) {
    Job job;
    bool stopped;
    {
      absl::MutexLock lock(&mu_);
      for (absl::Time now = base::SteadyNow(); !HasWork() && now < next;
           now = base::SteadyNow()) {
        wake_.WaitWithTimeout(&mu_, std::min(next - now, absl::Hours(1)));
      }
      stopped = stopping_;
      if (!jobs_.empty()) {
        job = std::move(jobs_.front());
        jobs_.pop_front();
      } else if (stopped) {
        return;
      } else if (begun_ && !running_) {
        running_ = true;
        next = base::SteadyNow();
      }
    }
    if (job != nullptr) {
      job(stopped);
    } else if (base::SteadyNow() >= next) {
      const absl::Duration pause = routine_();
      next = base::SteadyNow() + pause;
    }
  }
}

}  // namespace sfmamba::repository
