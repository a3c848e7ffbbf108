#include "server/batching/batcher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/reasons.h"
#include "server/base/thread_name.h"

namespace sfmamba::batching {
namespace {

absl::Status WhyDropped(const BatchTask& task) {
  return task.is_cancelled() ? server::Cancelled("queue")
                             : server::Expired("queue");
}

}  // namespace

Batcher::Batcher(const BatchOptions& options, int threads, MakeRun make_run,
                 QueueChanged queue_changed, Clock clock)
    : make_run_(std::move(make_run)),
      clock_(std::move(clock)),
      room_(options.max_queue_items, options.max_queue_bytes,
            options.retry_after),
      queue_changed_(std::move(queue_changed)),
      queue_(options, threads),
      running_since_(threads, absl::InfiniteFuture()),
      drop_thread_([this] { DropLoop(); }) {
  for (int thread = 0; thread < threads; ++thread) {
    run_threads_.emplace_back([this, thread] { RunLoop(thread); });
  }
}

Batcher::~Batcher() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    queue_.Drain();
    run_wake_.Signal();
  }
  for (std::thread& thread : run_threads_) thread.join();
  drop_thread_.join();
}

void Batcher::Submit(BatchTask task) {
  absl::Status refusal;
  if (task.reservation.empty()) {
    absl::StatusOr<Reservation> room = Reserve(1, task.image.bytes());
    if (room.ok()) task.reservation = *std::move(room);
    refusal = room.status();
  }
  {
    absl::MutexLock lock(&mu_);
    if (stopping_) refusal = server::Draining("the model");
    if (refusal.ok()) {
      const bool cancel_check = queue_.size() == 0;
      const absl::Time now = clock_();
      const absl::Time drop_at =
          std::min(task.deadline,
                   cancel_check ? now + kCancelPeriod : absl::InfiniteFuture());
      queue_.Push(std::move(task), now);
      ReportQueue();
      if (queue_.Due(now) < run_at_) run_wake_.Signal();
      if (drop_at < drop_at_) drop_wake_.Signal();
      return;
    }
  }
  task.reservation.Release();
  task.done(std::move(refusal), BatchInfo());
}

absl::Time Batcher::RunningSince() const {
  absl::MutexLock lock(&mu_);
  return *std::min_element(running_since_.begin(), running_since_.end());
}

void Batcher::RunLoop(int thread) {
  server::NameThisThread(absl::StrCat("batch-", thread));
  Run run = make_run_(thread);
  while (std::optional<Batch> batch = NextBatch(thread)) {
    const uint64_t number = batch->number;
    run(*std::move(batch));
    absl::MutexLock lock(&mu_);
    queue_.Ran(number, clock_());
  }
}

std::optional<Batch> Batcher::NextBatch(int thread) {
  absl::MutexLock lock(&mu_);
  running_since_[thread] = absl::InfiniteFuture();
  idle_.push_back(thread);
  while (idle_.front() != thread) turn_wake_.Wait(&mu_);
  std::optional<Batch> batch = WaitForBatch();
  if (batch.has_value()) running_since_[thread] = clock_();
  idle_.pop_front();
  turn_wake_.SignalAll();
  return batch;
}

std::optional<Batch> Batcher::WaitForBatch() {
  while (true) {
    const absl::Time now = clock_();
    if (queue_.Due(now) <= now) {
      MoveDropped(now);
      std::optional<Batch> batch = queue_.PopBatch(now);
      if (!batch.has_value()) continue;
      Drop(std::exchange(batch->late, {}));
      for (BatchTask& task : batch->tasks) task.reservation.Release();
      ReportQueue();
      if (batch->tasks.empty()) continue;
      return batch;
    }
    if (stopping_) {
      emptied_ = true;
      drop_wake_.Signal();
      return std::nullopt;
    }
    run_at_ = queue_.Due(now);
    run_wake_.WaitWithTimeout(&mu_, run_at_ - now);
    run_at_ = absl::InfinitePast();
  }
}

void Batcher::DropLoop() {
  server::NameThisThread("batch-drop");
  while (true) {
    std::vector<BatchTask> dropped = NextDropped();
    if (dropped.empty()) return;
    for (BatchTask& task : dropped) task.done(WhyDropped(task), BatchInfo());
  }
}

std::vector<BatchTask> Batcher::NextDropped() {
  absl::MutexLock lock(&mu_);
  while (true) {
    const absl::Time now = clock_();
    MoveDropped(now);
    if (!dropped_.empty()) return std::exchange(dropped_, {});
    if (emptied_) return {};
    drop_at_ = queue_.size() == 0
                   ? absl::InfiniteFuture()
                   : std::min(queue_.NextDeadline(), now + kCancelPeriod);
    drop_wake_.WaitWithTimeout(&mu_, drop_at_ - now);
    drop_at_ = absl::InfinitePast();
  }
}

void Batcher::MoveDropped(absl::Time now) { Drop(queue_.TakeDropped(now)); }

void Batcher::Drop(std::vector<BatchTask> dropped) {
  if (dropped.empty()) return;
  for (BatchTask& task : dropped) task.reservation.Release();
  std::move(dropped.begin(), dropped.end(), std::back_inserter(dropped_));
  ReportQueue();
  drop_wake_.Signal();
}

void Batcher::ReportQueue() {
  queue_changed_(queue_.size(), queue_.bytes(), queue_.Oldest());
}

}  // namespace sfmamba::batching
