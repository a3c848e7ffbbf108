#include "server/threads/worker.h"

#include <utility>

#include "absl/synchronization/notification.h"
#include "base/steady_clock.h"
#include "server/threads/thread_name.h"

namespace sfmamba::server {

Worker::Worker(Options options)
    : options_(std::move(options)), thread_([this] { Loop(); }) {}

Worker::Worker(std::string name, absl::Duration period,
               std::function<void()> fn)
    : Worker(Options{std::move(name)}) {
  Repeat(period, [period, fn = std::move(fn)] {
    fn();
    return period;
  });
}

Worker::~Worker() {
  Stop();
  thread_.join();
}

bool Worker::Push(Job job) {
  absl::MutexLock lock(&mu_);
  if (stopping_ || jobs_.size() >= options_.most_waiting) return false;
  jobs_.push_back(std::move(job));
  wake_.Signal();
  return true;
}

void Worker::Run(absl::FunctionRef<void()> fn) {
  absl::Notification done;
  Push([&](bool /*stopped*/) {
    fn();
    done.Notify();
  });
  done.WaitForNotification();
}

void Worker::Repeat(absl::Duration pause, Routine routine) {
  absl::MutexLock lock(&mu_);
  routine_ = std::move(routine);
  due_ = base::SteadyNow() + pause;
  wake_.Signal();
}

void Worker::Stop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
  wake_.Signal();
}

bool Worker::stopping() const {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

void Worker::Loop() {
  NameThisThread(options_.name);
  options_.start();
  absl::MutexLock lock(&mu_);
  while (true) {
    const absl::Time now = base::SteadyNow();
    if (!jobs_.empty()) {
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      const bool stopped = stopping_;
      mu_.Unlock();
      job(stopped);
      job = nullptr;  // Destroys the captures while mu_ is unlocked.
      mu_.Lock();
    } else if (stopping_) {
      return;
    } else if (now < due_) {
      wake_.WaitWithTimeout(&mu_, due_ - now);
    } else {
      const Routine routine = routine_;
      mu_.Unlock();
      const absl::Duration pause = routine();
      mu_.Lock();
      due_ = base::SteadyNow() + pause;
    }
  }
}

}  // namespace sfmamba::server
