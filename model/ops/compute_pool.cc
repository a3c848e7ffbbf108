#include "model/ops/compute_pool.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <thread>
#include <utility>

#include "model/ops/affinity.h"

namespace sfmamba::ops {
namespace {

// How long an idle worker spins before it sleeps. This is longer than the time
// that a model needs between two loops.
constexpr absl::Duration kWorkerSpin = absl::Microseconds(500);
// How long a caller spins while its helpers finish the last parts of its loop.
// Usually, they need less time than this. After this time, the caller sleeps.
constexpr absl::Duration kCallerSpin = absl::Microseconds(100);
// How long a worker watches whether a caller computes. If the caller had a CPU
// for less than half of this time, it has lost its CPU.
constexpr absl::Duration kStandstill = absl::Microseconds(100);
// If a thread is paused for longer than this, another process has its CPU.
// Threads of the Linux kernel pause it for less time.
constexpr absl::Duration kLongPause = absl::Milliseconds(1);
// A pause is ignored if the pause before it is longer ago than this. A process
// that computes continuously takes a CPU every few milliseconds.
constexpr absl::Duration kSeldom = absl::Milliseconds(50);
// After two pauses that are less than kSeldom apart, IsDisturbed() is true for
// this long.
constexpr absl::Duration kCalmAfter = absl::Milliseconds(200);

constexpr int64_t kAllParts = std::numeric_limits<int64_t>::max();

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns the CPU time that a thread has used, in nanoseconds. If Linux does
// not report it, returns the present time, as if the thread had run all the
// time.
int64_t ProcessorTime(clockid_t thread = CLOCK_THREAD_CPUTIME_ID) {
  timespec time;
  if (clock_gettime(thread, &time) != 0) return Now();
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

// Returns a clock with which other threads can read the calling thread's CPU
// time.
clockid_t ThreadClock() {
  clockid_t clock;
  const int error = pthread_getcpuclockid(pthread_self(), &clock);
  return error == 0 ? clock : CLOCK_MONOTONIC;
}

// Measures how long the calling thread had no CPU. Paused() also has a useful
// side effect, because it asks Linux how long the thread has run. If the thread
// has used up its time slice, Linux then lets another process run. Linux would
// otherwise do this at its next tick, perhaps in the middle of a part.
class Stopwatch {
 public:
  int64_t Paused() const {
    return (Now() - start_) - (ProcessorTime() - used_);
  }

 private:
  const int64_t start_ = Now(), used_ = ProcessorTime();
};

}  // namespace

// A loop that is being computed. It is a local variable of its caller and
// exists until no thread computes a part of it.
class ComputePool::Loop {
 public:
  // If `equal_parts`, there is one part for each thread, and all have the same
  // size. If not, parts become smaller towards the end of the loop.
  Loop(int threads, int64_t count, int64_t grain, bool equal_parts, Body body)
      : threads(threads),
        processor(sched_getcpu()),
        caller(gettid()),
        caller_clock(ThreadClock()),
        count_(count),
        grain_(grain),
        share_(equal_parts ? (count + threads - 1) / threads : 0),
        body_(body) {}

  bool HasParts() const { return next_.load() < count_; }

  // Computes at most `parts` parts.
  void Compute(int64_t parts) {
    int64_t begin, end;
    for (; parts > 0 && Take(&begin, &end); --parts) {
      try {
        body_(begin, end);
      } catch (...) {
        next_ = count_;  // Drops the parts that no thread has taken.
        if (!failed_.exchange(true)) error_ = std::current_exception();
      }
    }
  }

  // May be called only while no thread computes a part.
  void ThrowIfFailed() {
    if (error_) std::rethrow_exception(error_);
  }

  const int threads;    // The maximum, with the caller.
  const int processor;  // The caller's processor at the start.
  const pid_t caller;   // The Linux ID of the caller's thread.
  const clockid_t caller_clock;
  bool moved = false;           // A worker has moved the caller. Under mu_.
  std::atomic<int> helpers{0};  // Workers that compute. Written under mu_.
  absl::CondVar done;           // Signalled when helpers becomes 0.

 private:
  bool Take(int64_t* begin, int64_t* end) {
    int64_t next = next_.load();
    do {
      const int64_t left = count_ - next;
      if (left <= 0) return false;
      // Without a fixed size, parts become smaller as fewer elements remain. A
      // thread that loses its CPU near the end then delays the loop only a
      // little. If fewer than grain_ elements would remain after this part,
      // they are added to this part.
      int64_t size = std::max(grain_, share_ > 0 ? share_ : left / threads);
      if (left - size < grain_) size = left;
      *begin = next;
      *end = next + size;
    } while (!next_.compare_exchange_weak(next, *end));
    return true;
  }

  const int64_t count_, grain_;
  const int64_t share_;  // Elements in a part, or 0 if not fixed.
  const Body body_;
  std::atomic<int64_t> next_{0};  // The first element that is not taken.
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // Set by the thread that sets failed_.
};

struct ComputePool::Worker {
  enum class State { kComputing, kSpinning, kAsleep };

  int home = -1;       // The CPU to stay on if IsDisturbed(), or -1.
  int processor = -1;  // The CPU to which the thread is bound, or -1.
  State state = State::kComputing;  // Guarded by mu_.
  absl::CondVar wake;               // Signalled when it must wake up.
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
    ++published_;  // Workers that spin see this and stop.
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
  const Stopwatch watch;
  loop.Compute(kAllParts);
  NoticePause(watch.Paused());
  // An exception may be thrown only after Retire(). Before, helpers may still
  // use the loop, which is a local variable.
  Retire(loop);
  loop.ThrowIfFailed();
}

void ComputePool::Publish(Loop& loop) {
  absl::MutexLock lock(&mu_);
  StartWorkers(loop.threads);
  ++computing_;
  loops_.push_back(&loop);
  ++published_;
  // Only one worker is woken here, so that the caller starts computing soon.
  // Each worker that finds the loop wakes the next one.
  WakeWorker(loop);
}

void ComputePool::Retire(Loop& loop) {
  // Some helpers may still compute the last parts of the loop. Usually, they
  // need less time than this thread would need to fall asleep and wake up. So
  // this thread spins first.
  if (loop.helpers.load() > 0 && !IsDisturbed()) {
    SpinUntil(kCallerSpin, [&] { return loop.helpers.load() == 0; });
  }
  absl::MutexLock lock(&mu_);
  --computing_;
  ++retired_;
  while (loop.helpers.load() > 0) loop.done.Wait(&mu_);
  loops_.erase(std::find(loops_.begin(), loops_.end(), &loop));
}

void ComputePool::StartWorkers(int threads) {
  if (threads <= threads_) return;
  threads_ = threads;
  const bool stay = static_cast<int>(processors_.size()) == threads;
  // If there is a worker for each CPU, one of them is on the caller's CPU and
  // cannot help. It is still needed, because another caller may be on another
  // CPU.
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
      const Stopwatch watch;
      // While other processes use the CPUs, a worker computes only one part at
      // a time. Between two parts, watch.Paused() gives Linux a chance to run
      // another process.
      loop->Compute(IsDisturbed() ? 1 : kAllParts);
      mu_.Lock();
      --computing_;
      if (--loop->helpers == 0) loop->done.Signal();
      mu_.Unlock();
      NoticePause(watch.Paused());
      mu_.Lock();
      spins = true;  // Another loop may follow soon.
      continue;
    }
    if (spins) {
      spins = false;
      SpinForLoop(self);
      continue;
    }
    // Perhaps this worker was woken for a loop, but is not allowed to help it
    // any more (see MayHelp()). For each loop, wakes another worker that is
    // allowed to help it, if there is one.
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
  // A worker that is bound to the caller's CPU would compete with the caller
  // for this CPU.
  return worker.processor != loop.processor && computing_ < loop.threads &&
         loop.HasParts();
}

void ComputePool::SpinForLoop(Worker& self) {
  const bool disturbed = IsDisturbed();
  // The loop whose caller this worker watches. If other processes use the CPUs,
  // this is the oldest loop. Usually, all parts of this loop are taken. The
  // worker watches nothing if the caller was on this worker's CPU at the start
  // of the loop, or if the caller has been moved already.
  Loop* last = nullptr;
  if (disturbed) {
    if (self.processor < 0 || loops_.empty()) return;
    last = loops_.front();
    if (last->processor == self.processor || last->moved) return;
  }
  const int64_t used = last ? ProcessorTime(last->caller_clock) : 0;
  const int64_t start = Now(), seen = published_.load(), gone = retired_.load();
  // Any new loop ends the spinning, even if this worker is not allowed to help
  // the new loop. Perhaps the new loop's caller needs this CPU.
  self.state = Worker::State::kSpinning;
  mu_.Unlock();
  SpinUntil(disturbed ? kStandstill : kWorkerSpin, [&] {
    return published_.load() != seen || (disturbed && retired_.load() != gone);
  });
  mu_.Lock();
  self.state = Worker::State::kComputing;
  // Returns if the watched loop may be gone. A later loop can have the same
  // address on the stack. Therefore, any new loop ends the watch, too. Also
  // returns if the caller need not be moved.
  if (last == nullptr || published_.load() != seen ||
      std::find(loops_.begin(), loops_.end(), last) == loops_.end() ||
      last->helpers.load() > 0 || last->moved) {
    return;
  }
  // If the caller has computed for less than half of the time since `start`, it
  // waits for its CPU. It is then moved to this worker's CPU.
  if (ProcessorTime(last->caller_clock) - used < (Now() - start) / 2) {
    last->moved = true;
    MoveThread(last->caller, self.processor);
  }
}

ComputePool::Loop* ComputePool::FindLoop(const Worker& worker) {
  Loop* found = nullptr;  // The loop with the fewest helpers.
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
    // This worker will help.
    if (worker->state == Worker::State::kSpinning) return;
    if (worker->state == Worker::State::kAsleep) asleep = worker.get();
  }
  if (asleep == nullptr) return;
  asleep->state = Worker::State::kComputing;
  asleep->wake.Signal();
}

void ComputePool::SpinUntil(absl::Duration limit,
                            absl::FunctionRef<bool()> done) {
  const int64_t start = Now();
  const int64_t end = start + absl::ToInt64Nanoseconds(limit);
  for (int64_t last = start, now; !done() && last < end; last = now) {
    for (int i = 0; i < 2; ++i) __builtin_ia32_pause();
    // If a millisecond has passed since the last reading of the clock, this
    // thread has lost its CPU.
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
