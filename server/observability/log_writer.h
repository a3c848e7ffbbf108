#ifndef SFMAMBA_SERVER_OBSERVABILITY_LOG_WRITER_H_
#define SFMAMBA_SERVER_OBSERVABILITY_LOG_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/threads/steady_cond_var.h"
#include "server/threads/worker.h"

namespace sfmamba::observability {

// Writes lines to a descriptor, on a thread of its own, so that no other thread
// waits for whoever reads them. What does not fit into the queue is dropped and
// counted.
//
// Thread-safe. The destructor waits up to 0.2 s for what is queued to be
// written.
class LogWriter {
 public:
  struct Options {
    // Most bytes of waiting lines. Urgent lines may use a quarter more.
    size_t max_bytes = 1 << 20;
  };

  // `fd` is used, not owned. It may block: a full pipe without a reader stops
  // only the thread of this object.
  LogWriter(int fd, const Options& options);
  ~LogWriter();

  // Queues `line`, which ends in a newline, or drops it. Never blocks. An
  // urgent line finds room when others do not.
  void Write(std::string line, bool urgent) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until the lines queued so far are written; false if `limit` passes
  // before.
  bool Flush(absl::Duration limit) const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the number of lines dropped since the last call.
  int64_t TakeDropped() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Writes `text` to its end. False if the descriptor takes no more, or if
  // this object ends and time is up.
  bool WriteAll(const std::string& text) ABSL_LOCKS_EXCLUDED(mu_);
  bool GivesUp() const ABSL_LOCKS_EXCLUDED(mu_);

  const int fd_;
  const Options options_;

  mutable absl::Mutex mu_;
  mutable server::SteadyCondVar written_;  // Signalled when all are written.
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;  // Lines waiting or being written.
  int64_t dropped_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time give_up_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  server::Worker worker_{{"log"}};  // Last: uses everything above.
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_LOG_WRITER_H_
