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

// Worker threads that help the pool's callers to compute loops. Any number of
// callers may use the pool at the same time:
//
//   pool.Run(/*threads=*/4, rows, /*grain=*/16,
//            [&](int64_t begin, int64_t end) { Multiply(begin, end); });
//
// The caller computes parts of its loop. Each idle worker computes parts, too.
// A caller never waits for a worker that has no part of its loop. If all
// workers are busy, the caller computes the whole loop.
//
// Each loop has a maximum number of threads. Workers help a loop only while
// fewer threads than this maximum compute in the whole pool, including its
// callers. So callers that compute at the same time do not oversubscribe the
// CPUs.
//
// On a quiet machine, a loop has one part for each thread, which is fastest. An
// idle thread spins for a fraction of a millisecond before it sleeps.
//
// If other processes use the same CPUs, the pool's threads lose their CPUs for
// milliseconds, again and again. The pool notices this and then works
// differently:
//
// - Parts become smaller towards the end of a loop. A thread that loses its
//   CPU then delays the loop by one part only.
// - Idle threads sleep at once. Spinning would take time from the threads for
//   which they wait.
// - If a loop may have as many threads as the pool has CPUs, one worker stays
//   on each CPU. A worker does not help a caller that is on the same CPU. If
//   workers did not stay, Linux would often wake a worker on its caller's CPU,
//   because another process uses the CPU on which the worker ran before.
// - Each worker computes one part at a time and offers its CPU to other
//   processes between two parts. Linux then seldom takes the CPU within a
//   part.
// - When the last part is taken, a worker that stays on its CPU watches for a
//   moment whether the loop's caller computes. If the caller has lost its
//   CPU, the worker moves the caller to the worker's CPU. Otherwise, Linux
//   would let the caller wait for its CPU until Linux's next tick, which comes
//   milliseconds later.
//
// Thread-safe. No loop may run when the pool is destroyed.
class ComputePool {
 public:
  using Body = absl::FunctionRef<void(int64_t begin, int64_t end)>;

  // The workers run on the CPUs that the calling thread may run on.
  ComputePool();
  // The workers run only on the CPUs in `processors`, a list of Linux's CPU
  // numbers. The list must not be empty. If Linux refuses to bind the workers,
  // the pool works but is slower.
  explicit ComputePool(std::vector<int> processors);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  // Divides [0, count) into parts and calls body(begin, end) for each. At most
  // `threads` threads make these calls, including the calling thread. A part
  // has at least `grain` elements, so there is only one call if count < 2 *
  // grain. Starts missing workers. Returns when all calls are done. If a call
  // throws, Run() throws the same exception, and parts that no thread has taken
  // by then are not computed.
  void Run(int threads, int64_t count, int64_t grain, Body body)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns whether other processes have used the CPUs within the last 200 ms.
  // If so, loops have more parts than threads.
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
  // Waits for a new loop, at most 0.5 ms. If other processes use the CPUs,
  // waits only 0.1 ms. If the caller of the oldest loop has lost its CPU during
  // these 0.1 ms, moves this caller to the worker's CPU.
  void SpinForLoop(Worker& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayHelp(const Worker& worker, const Loop& loop) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Loop* FindLoop(const Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Wakes a worker that may help the loop, unless such a worker is spinning.
  void WakeWorker(const Loop& loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Spins until done() returns true, until `limit` is over, or until the thread
  // has lost its CPU.
  void SpinUntil(absl::Duration limit, absl::FunctionRef<bool()> done);
  // Records that a thread had no CPU for this time. Returns whether the time is
  // so long that another process must have used the CPU.
  bool NoticePause(int64_t nanoseconds);

  const bool bound_;  // Whether workers run on processors_ only.
  const std::vector<int> processors_;

  // The time of the last pause of a thread, and the time from which threads may
  // spin again. Both are in nanoseconds of the steady clock.
  std::atomic<int64_t> last_pause_{0}, calm_at_{0};
  std::atomic<int64_t> published_{0}, retired_{0};  // Count loops.

  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int threads_ ABSL_GUARDED_BY(mu_) = 1;    // The maximum wanted so far.
  int computing_ ABSL_GUARDED_BY(mu_) = 0;  // Callers and workers with a loop.
  std::vector<Loop*> loops_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Worker>> workers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPUTE_POOL_H_
