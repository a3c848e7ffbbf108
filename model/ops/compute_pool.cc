#include "model/ops/compute_pool.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "model/ops/affinity.h"

namespace sfmamba::ops {
namespace {

// Longer than the serial code between two loops of a model.
constexpr absl::Duration kWorkerSpin = absl::Microseconds(500);
// Longer than most last parts.
constexpr absl::Duration kCallerSpin = absl::Microseconds(100);
// A thread that loses its processor for longer shares it with another process.
// Kernel threads take less.
constexpr absl::Duration kLongPause = absl::Milliseconds(1);
// Pauses further apart are nobody's who stays: another busy process takes a
// processor every few milliseconds.
constexpr absl::Duration kSeldom = absl::Milliseconds(50);
// How long threads do not spin after two pauses that are closer.
constexpr absl::Duration kCalmAfter = absl::Milliseconds(200);

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns the processor time that the calling thread has used, in nanoseconds.
int64_t ProcessorTime() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

}  // namespace

// A loop that is being computed. Lives on its caller's stack until no thread
// computes a part of it.
class ComputePool::Loop {
 public:
  // `equal_parts` says that each thread takes one part of the same size.
  Loop(int threads, int64_t count, int64_t grain, bool equal_parts, Body body)
      : threads(threads),
        processor(sched_getcpu()),
        count_(count),
        grain_(grain),
        share_(equal_parts ? (count + threads - 1) / threads : 0),
        body_(body) {}

  bool HasParts() const { return next_.load() < count_; }

  // Computes parts until none is left.
  void Compute() {
    int64_t begin, end;
    while (Take(&begin, &end)) {
      try {
        body_(begin, end);
      } catch (...) {
        next_ = count_;
        if (!failed_.exchange(true)) error_ = std::current_exception();
      }
    }
  }

  // Requires that no thread computes.
  void ThrowIfFailed() {
    if (error_) std::rethrow_exception(error_);
  }

  const int threads;            // The most that compute, the caller among them.
  const int processor;          // The caller's.
  std::atomic<int> helpers{0};  // Workers that compute. Written under mu_.
  absl::CondVar done;           // Signalled when helpers becomes 0.

 private:
  bool Take(int64_t* begin, int64_t* end) {
    int64_t next = next_.load();
    do {
      const int64_t left = count_ - next;
      if (left <= 0) return false;
      int64_t size = std::max(grain_, share_ > 0 ? share_ : left / threads);
      if (left - size < grain_) size = left;
      *begin = next;
      *end = next + size;
    } while (!next_.compare_exchange_weak(next, *end));
    return true;
  }

  const int64_t count_, grain_;
  const int64_t share_;  // The elements in a part; 0: fewer and fewer.
  const Body body_;
  std::atomic<int64_t> next_{0};  // The first element that nobody has taken.
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // Written by the thread that sets failed_.
};

struct ComputePool::Worker {
  enum class State { kComputing, kSpinning, kAsleep };

  int home = -1;       // Where it stays if others disturb; -1: nowhere.
  int processor = -1;  // Where the thread stays; -1: anywhere.
  State state = State::kComputing;  // Guarded by mu_.
  absl::CondVar wake;               // Signalled when kAsleep ends.
  std::thread thread;
};

ComputePool::ComputePool() : bound_(false), processors_(ThreadProcessors()) {}

ComputePool::ComputePool(std::vector<int> processors)
    : bound_(true), processors_(std::move(processors)) {}

ComputePool::~ComputePool() {
  std::vector<std::unique_ptr<Worker>> workers;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    ++published_;  // Ends spinning.
    for (const auto& worker : workers_) worker->wake.Signal();
    workers.swap(workers_);
  }
  for (const auto& worker : workers) worker->thread.join();
}

void ComputePool::Run(int threads, int64_t count, int64_t grain, Body body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(1, grain);
  if (threads <= 1 || count < 2 * grain) return body(0, count);
  Loop loop(threads, count, grain, /*equal_parts=*/!IsDisturbed(), body);
  Publish(loop);
  Compute(loop);
  Retire(loop);
  loop.ThrowIfFailed();
}

void ComputePool::Publish(Loop& loop) {
  absl::MutexLock lock(&mu_);
  StartWorkers(loop.threads);
  ++computing_;
  loops_.push_back(&loop);
  ++published_;
  WakeWorker(loop);
}

void ComputePool::Retire(Loop& loop) {
  if (loop.helpers.load() > 0) {
    SpinUntil(kCallerSpin, [&] { return loop.helpers.load() == 0; });
  }
  absl::MutexLock lock(&mu_);
  --computing_;
  while (loop.helpers.load() > 0) loop.done.Wait(&mu_);
  loops_.erase(std::find(loops_.begin(), loops_.end(), &loop));
}

void ComputePool::StartWorkers(int threads) {
  if (threads <= threads_) return;
  threads_ = threads;
  const bool stay = static_cast<int>(processors_.size()) == threads;
  // One on each processor, though it does not help callers there.
  const int wanted = stay ? threads : threads - 1;
  for (int i = static_cast<int>(workers_.size()); i < wanted; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    if (stay) worker.home = processors_[i];
    worker.thread = std::thread([this, &worker] { Work(worker); });
  }
}

void ComputePool::Work(Worker& self) {
  pthread_setname_np(pthread_self(), "compute");
  if (bound_) BindThread(processors_);
  bool spins = false;
  absl::MutexLock lock(&mu_);
  while (!stopping_) {
    StayIfDisturbed(self);
    if (Loop* loop = FindLoop(self)) {
      ++loop->helpers;
      ++computing_;
      WakeWorker(*loop);
      mu_.Unlock();
      Compute(*loop);
      mu_.Lock();
      --computing_;
      if (--loop->helpers == 0) loop->done.Signal();
      spins = true;
      continue;
    }
    if (spins) {
      // Only until the next loop, which may be one of a caller on this
      // processor, whom a thread that spins would hold up.
      spins = false;
      self.state = Worker::State::kSpinning;
      const int64_t seen = published_.load();
      mu_.Unlock();
      SpinUntil(kWorkerSpin, [&] { return published_.load() != seen; });
      mu_.Lock();
      self.state = Worker::State::kComputing;
      continue;
    }
    // This one may have been woken for a loop that it may not help any more.
    for (const Loop* loop : loops_) WakeWorker(*loop);
    self.state = Worker::State::kAsleep;
    while (self.state == Worker::State::kAsleep && !stopping_) {
      self.wake.Wait(&mu_);
    }
  }
}

bool ComputePool::IsDisturbed() const { return Now() < calm_at_.load(); }

void ComputePool::StayIfDisturbed(Worker& self) {
  const int wanted = IsDisturbed() ? self.home : -1;
  if (wanted == self.processor) return;
  BindThread(wanted >= 0 ? std::vector<int>{wanted} : processors_);
  self.processor = wanted;
}

bool ComputePool::MayHelp(const Worker& worker, const Loop& loop) const {
  return worker.processor != loop.processor && computing_ < loop.threads &&
         loop.HasParts();
}

ComputePool::Loop* ComputePool::FindLoop(const Worker& worker) {
  Loop* found = nullptr;  // The one with the fewest helpers.
  for (Loop* loop : loops_) {
    if (MayHelp(worker, *loop) &&
        (found == nullptr || loop->helpers.load() < found->helpers.load())) {
      found = loop;
    }
  }
  return found;
}

void ComputePool::WakeWorker(const Loop& loop) {
  Worker* asleep = nullptr;
  for (const auto& worker : workers_) {
    if (!MayHelp(*worker, loop)) continue;
    if (worker->state == Worker::State::kSpinning) return;
    if (worker->state == Worker::State::kAsleep) asleep = worker.get();
  }
  if (asleep == nullptr) return;
  asleep->state = Worker::State::kComputing;
  asleep->wake.Signal();
}

void ComputePool::Compute(Loop& loop) {
  const int64_t start = Now(), used = ProcessorTime();
  loop.Compute();
  NoticePause((Now() - start) - (ProcessorTime() - used));
}

void ComputePool::SpinUntil(absl::Duration limit,
                            absl::FunctionRef<bool()> done) {
  const int64_t start = Now();
  if (start < calm_at_.load()) return;
  const int64_t end = start + absl::ToInt64Nanoseconds(limit);
  for (int64_t last = start, now; !done() && last < end; last = now) {
    for (int i = 0; i < 2; ++i) __builtin_ia32_pause();
    now = Now();
    if (NoticePause(now - last)) return;
  }
}

bool ComputePool::NoticePause(int64_t nanoseconds) {
  if (nanoseconds < absl::ToInt64Nanoseconds(kLongPause)) return false;
  const int64_t now = Now();
  const int64_t since = now - last_pause_.exchange(now);
  if (since < absl::ToInt64Nanoseconds(kSeldom)) {
    calm_at_ = now + absl::ToInt64Nanoseconds(kCalmAfter);
  }
  return true;
}

}  // namespace sfmamba::ops
