#ifndef SFMAMBA_SERVER_THREADS_FAIR_POOL_H_
#define SFMAMBA_SERVER_THREADS_FAIR_POOL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "server/threads/fair_queue.h"

namespace sfmamba::server {

// Runs pieces of work on a fixed number of threads, in the order of a
// FairQueue. Together, the running pieces hold at most `memory_bytes`. If too
// little memory is free for the next piece, other pieces may run first, see
// FairQueue::Pop(). If every thread runs a long piece, an additional thread
// runs short pieces. Short pieces therefore need not wait until a long piece
// ends.
//
// The pool accepts all work. The caller must limit the number of waiting
// pieces. Thread-safe, and no method blocks. The destructor finishes all
// accepted work, then joins the threads.
class FairPool {
 public:
  struct Options {
    std::string name = "pool";  // The threads' name in ps and debuggers.
    int threads = 1;
    // The maximum memory of all running pieces together, in bytes. A piece that
    // needs more counts as `memory_bytes`. No other piece that needs memory
    // then runs at the same time.
    int64_t memory_bytes = std::numeric_limits<int64_t>::max();
    // A piece is long if its expected time exceeds this duration.
    absl::Duration long_piece = absl::InfiniteDuration();
    // The length of a round, in virtual time. Pieces in the same round run in
    // the order of their priorities and deadlines. See FairQueue.
    absl::Duration round = absl::Milliseconds(5);
    // Returns the current time, which is compared with Work::deadline.
    std::function<absl::Time()> clock = base::SteadyNow;
  };

  explicit FairPool(Options options);
  ~FairPool();

  // Returns a new value for Work::group, which identifies the pieces of one
  // request.
  uint64_t NewGroup() { return next_group_++; }

  // Adds a piece of work. Ignores exceptions that `work.run` throws. The
  // captures of `work.run` are destroyed right after the call of `work.run`.
  // The destructor of a capture can therefore notify a caller who waits for the
  // work.
  void Run(Work work) ABSL_LOCKS_EXCLUDED(mu_);

  // See FairQueue::Expedite().
  void Expedite(uint64_t group) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the expected time from now until a new group (all pieces of one
  // request) would be finished. `cost` is the time that all work of the group
  // takes on one thread.
  absl::Duration Wait(absl::Duration cost, Priority priority,
                      absl::Time deadline) const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the number of threads that run a piece.
  int busy() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the number of waiting pieces.
  int queued() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Loop();  // The body of each thread.
  // Returns true if one more thread may start a piece. There are two cases:
  // - The number of running pieces is less than Options::threads.
  // - The number of running pieces is Options::threads, and all of them are
  //   long. The new piece must then be short. Next() ensures this.
  bool MayStart() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Wakes one thread if a piece waits and MayStart() is true. Called when a
  // piece is added and when a thread starts a piece. A thread that ends a piece
  // looks for the next piece itself.
  void WakeOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Removes and returns the next piece that may run now, or returns nullopt if
  // there is none.
  std::optional<Work> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  std::atomic<uint64_t> next_group_{1};

  mutable absl::Mutex mu_;
  // Signalled when a waiting thread may start a piece of work, and when
  // stopping_ changes.
  absl::CondVar changed_;
  FairQueue queue_ ABSL_GUARDED_BY(mu_);
  int64_t free_bytes_ ABSL_GUARDED_BY(mu_);
  // The number of threads that run a piece.
  int busy_ ABSL_GUARDED_BY(mu_) = 0;
  // The number of threads that run a long piece.
  int long_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // The threads are the last members, because they use all members above.
  std::vector<std::thread> threads_;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_FAIR_POOL_H_
