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

// Worker threads that help their callers to compute loops. Any number of
// callers may use the pool at the same time:
//
//   pool.Run(/*threads=*/4, rows, /*grain=*/16,
//            [&](int64_t begin, int64_t end) { Multiply(begin, end); });
//
// The caller computes parts of its loop, and so does each worker that is free.
// A caller never waits for a worker that has no part of its loop. If all
// workers are busy, the caller computes the whole loop.
//
// Each loop has a maximum number of threads. Workers help a loop only while
// fewer threads than this compute in the whole pool. So callers that compute at
// the same time do not oversubscribe the processors.
//
// On a quiet machine, a loop has one part for each thread, which is fastest. An
// idle thread spins for a fraction of a millisecond before it sleeps.
//
// The pool notices when other processes use its processors, because its threads
// then lose them for milliseconds, again and again. It then changes its ways:
//
// - Parts become smaller towards the end of a loop. A thread that loses its
//   processor then delays the loop by one part only.
// - Idle threads sleep at once. Spinning would take time from the threads that
//   they wait for.
// - If a loop may have as many threads as the pool has processors, one worker
//   stays on each processor. No worker helps a caller on the worker's own
//   processor. Without this rule, Linux often wakes a worker on its caller's
//   processor while another process has the other processor.
// - Each worker computes one part at a time and offers its processor to other
//   processes between two parts. Linux then seldom takes the processor within a
//   part.
// - When the last part is taken, a worker that stays on its processor watches
//   for a moment whether the loop's caller computes. A caller that has lost its
//   processor gets the worker's processor. Otherwise Linux would let the caller
//   wait until its next tick, milliseconds later.
//
// Thread-safe. No loop may run when the pool is destroyed.
class ComputePool {
 public:
  using Body = absl::FunctionRef<void(int64_t begin, int64_t end)>;

  // The workers run on the processors that the calling thread may run on.
  ComputePool();
  // The workers run on `processors` only, a list of at least one of Linux's CPU
  // numbers. If Linux refuses to bind them, the pool is only slower.
  explicit ComputePool(std::vector<int> processors);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  // Calls body(begin, end) for parts that partition [0, count). At most
  // `threads` threads make these calls, including the calling thread. A part
  // has at least `grain` elements, so there is only one call if count < 2 *
  // grain. Starts workers that are missing. Returns when all calls are done. If
  // a call throws, Run() throws the same exception, and parts that no thread
  // had taken by then are not computed.
  void Run(int threads, int64_t count, int64_t grain, Body body)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns whether other processes have used the processors within the last
  // 200 ms. If so, loops have more parts than threads.
  bool IsDisturbed() const;

 private:
  class Loop;
  struct Worker;

  // Offers the loop to the workers.
  void Publish(Loop& loop) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until no worker computes a part of the loop. Then removes the loop.
  void Retire(Loop& loop) ABSL_LOCKS_EXCLUDED(mu_);

  void StartWorkers(int threads) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Work(Worker& self) ABSL_LOCKS_EXCLUDED(mu_);  // A worker's thread.
  void StayIfDisturbed(Worker& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for a new loop for at most 0.5 ms. If other processes use the
  // processors, waits for 0.1 ms only. If the first loop's caller then has no
  // processor, gives it the processor of this worker.
  void SpinForLoop(Worker& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayHelp(const Worker& worker, const Loop& loop) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Loop* FindLoop(const Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Wakes a worker that may help the loop, unless such a worker is spinning.
  void WakeWorker(const Loop& loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Spins until done() returns true, until `limit` is over, or until the thread
  // loses its processor.
  void SpinUntil(absl::Duration limit, absl::FunctionRef<bool()> done);
  // Records that a thread had no processor for this time. Returns whether
  // another process must have used the processor.
  bool NoticePause(int64_t nanoseconds);

  const bool bound_;  // Whether workers run on processors_ only.
  const std::vector<int> processors_;

  // The time at which a thread last had no processor, and the time from which
  // on threads may spin again. In nanoseconds of the steady clock.
  std::atomic<int64_t> last_pause_{0}, calm_at_{0};
  std::atomic<int64_t> published_{0}, retired_{0};  // Numbers of loops.

  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int threads_ ABSL_GUARDED_BY(mu_) = 1;    // The largest number wanted.
  int computing_ ABSL_GUARDED_BY(mu_) = 0;  // Callers and workers with a loop.
  std::vector<Loop*> loops_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Worker>> workers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPUTE_POOL_H_
