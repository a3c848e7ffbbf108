#ifndef SFMAMBA_MODEL_OPS_COMPUTE_POOL_H_
#define SFMAMBA_MODEL_OPS_COMPUTE_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sfmamba::ops {

// Threads that share out loops, for any number of callers at once:
//
//   pool.Run(/*threads=*/4, rows, /*grain=*/16,
//            [&](int64_t begin, int64_t end) { Multiply(begin, end); });
//
// The caller takes parts of its loop and so does each worker that is free. A
// caller never waits for a worker that has no part of its loop: if the workers
// are busy it computes all of it.
//
// Workers help while fewer threads compute than the loop may have, so callers
// who compute at once do not oversubscribe the processors.
//
// On a quiet machine there is one part for each thread, which is cheapest, and
// an idle thread spins for a fraction of a millisecond before it sleeps. The
// pool notices when other processes use its processors: its threads lose them
// for milliseconds, again and again. Then the parts become smaller and smaller
// towards the loop's end, so that a thread that loses its processor delays the
// loop by one part only. Idle threads sleep at once, since spinning takes time
// from the threads that they wait for. If a loop may have as many threads as
// the pool has processors, a worker stays on each processor and none helps a
// caller on its own: otherwise the kernel often wakes a worker on its caller's
// processor while another process has the other one. Each worker computes one
// part at a time and offers its processor to other processes between two, so
// that the kernel seldom takes it within one. And when the last part is taken,
// a worker that stays watches for a moment whether the loop's caller computes:
// if the caller has lost its processor it gets the worker's. The kernel would
// leave it waiting until its next tick, milliseconds later.
//
// Thread-safe. No loop may run when the pool is destroyed.
class ComputePool {
 public:
  using Body = absl::FunctionRef<void(int64_t begin, int64_t end)>;

  // The processors are those that the calling thread may run on.
  ComputePool();
  // The workers run on `processors` only: Linux's numbers, at least one. If the
  // kernel refuses to bind them, that costs speed only.
  explicit ComputePool(std::vector<int> processors);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  // Calls body(begin, end) for parts that partition [0, count), on at most
  // `threads` threads, the calling one among them. A part has at least `grain`
  // elements, so there is one call if count < 2 * grain. Starts workers that
  // are missing. Returns when all calls are done. Throws what a call threw; the
  // parts that no thread had taken by then are not computed.
  void Run(int threads, int64_t count, int64_t grain, Body body)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns whether other processes have used the processors within the last
  // 200 ms. Loops then have more parts than threads.
  bool IsDisturbed() const;

 private:
  class Loop;
  struct Worker;

  // Lets workers see the loop.
  void Publish(Loop& loop) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until no worker computes a part of the loop, and hides it.
  void Retire(Loop& loop) ABSL_LOCKS_EXCLUDED(mu_);

  void StartWorkers(int threads) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Work(Worker& self) ABSL_LOCKS_EXCLUDED(mu_);  // A worker's thread.
  void StayIfDisturbed(Worker& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for a loop for 0.1 ms, on a quiet machine for 0.5 ms. While
  // disturbed, moves the first loop's caller here if it has no processor.
  void SpinForLoop(Worker& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayHelp(const Worker& worker, const Loop& loop) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Loop* FindLoop(const Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Wakes a worker that may help, unless one that may is spinning.
  void WakeWorker(const Loop& loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Spins until done(), for at most `limit` and until the thread loses its
  // processor.
  void SpinUntil(absl::Duration limit, absl::FunctionRef<bool()> done);
  // A thread has had no processor for this long. Returns whether that means
  // that another process uses it.
  bool NoticePause(int64_t nanoseconds);

  const bool bound_;  // Workers run on no other processors.
  const std::vector<int> processors_;

  // When a thread last had no processor, and when threads may spin again. In
  // nanoseconds of the steady clock.
  std::atomic<int64_t> last_pause_{0}, calm_at_{0};
  std::atomic<int64_t> published_{0}, retired_{0};  // Count loops.

  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int threads_ ABSL_GUARDED_BY(mu_) = 1;    // The most that a loop wanted.
  int computing_ ABSL_GUARDED_BY(mu_) = 0;  // Callers and workers with a loop.
  std::vector<Loop*> loops_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Worker>> workers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPUTE_POOL_H_
