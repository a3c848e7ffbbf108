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

// Does pieces of work on a fixed number of threads, in a FairQueue's order. The
// pieces that are being done hold at most `memory_bytes`; no thread waits for
// memory while a piece that fits may be done. While all threads do long pieces,
// one more thread does the others, so that these wait for none.
//
// It accepts everything: the caller bounds what waits. Thread-safe; nothing
// blocks. The destructor does all that was accepted, then joins the threads.
class FairPool {
 public:
  struct Options {
    std::string name = "pool";  // Names the threads, for ps and debuggers.
    int threads = 1;
    // A piece that holds more counts as this much, and is done alone.
    int64_t memory_bytes = std::numeric_limits<int64_t>::max();
    // Pieces that are expected to take longer are long.
    absl::Duration long_piece = absl::InfiniteDuration();
    absl::Duration round = absl::Milliseconds(5);         // See FairQueue.
    std::function<absl::Time()> clock = base::SteadyNow;  // For deadlines.
  };

  explicit FairPool(Options options);
  ~FairPool();

  // A number for Work::group that no other group has.
  uint64_t NewGroup() { return next_group_++; }

  // An exception that leaves `work.run` is dropped. What `work.run` captured is
  // destroyed then, and may tell who waits for it.
  void Run(Work work) ABSL_LOCKS_EXCLUDED(mu_);

  // See FairQueue::Expedite().
  void Expedite(uint64_t group) ABSL_LOCKS_EXCLUDED(mu_);

  // How long until a new group's work of `cost` is expected to be done.
  absl::Duration Wait(absl::Duration cost, Priority priority,
                      absl::Time deadline) const ABSL_LOCKS_EXCLUDED(mu_);

  int busy() const ABSL_LOCKS_EXCLUDED(mu_);    // Threads that work.
  int queued() const ABSL_LOCKS_EXCLUDED(mu_);  // Pieces that wait.

 private:
  void Loop();  // The body of each thread.
  // Whether one more thread may start a piece: not always a long one.
  bool MayStart() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Wakes a thread if there may be a piece for it. Each that starts a piece
  // wakes the next, and each that ends one looks for another itself.
  void WakeOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The next piece that may be done now, if any.
  std::optional<Work> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  std::atomic<uint64_t> next_group_{1};

  mutable absl::Mutex mu_;
  // Signalled when one more thread may start a piece, or stopping_ changes.
  absl::CondVar changed_;
  FairQueue queue_ ABSL_GUARDED_BY(mu_);
  int64_t free_bytes_ ABSL_GUARDED_BY(mu_);
  int busy_ ABSL_GUARDED_BY(mu_) = 0;  // Threads that work,
  int long_ ABSL_GUARDED_BY(mu_) = 0;  // and those on a long piece.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;  // Last: they use everything above.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_FAIR_POOL_H_
