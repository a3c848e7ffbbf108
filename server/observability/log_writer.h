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

// Writes lines to a file descriptor on a background thread. If the reader of
// the output is slow, only this thread waits. Lines that do not fit into the
// queue are dropped and counted.
//
// Thread-safe. The destructor waits up to 0.2 s for the queued lines.
class LogWriter {
 public:
  struct Options {
    // The maximum number of queued bytes. Urgent lines may exceed this number
    // by a quarter.
    size_t max_bytes = 1 << 20;
  };

  // `fd` must stay open while the writer exists. A blocking descriptor is
  // allowed, because a full pipe stops only the background thread.
  LogWriter(int fd, const Options& options);
  ~LogWriter();

  // Queues `line`, which must end in a newline. If the queue is full, drops and
  // counts the line. Never blocks. Urgent lines may use extra queue space.
  void Write(std::string line, bool urgent) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until the queue is empty and no line is being written. Returns false
  // if `limit` passes first.
  bool Flush(absl::Duration limit) const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the number of lines dropped since the last call.
  int64_t TakeDropped() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Writes all of `text`. Waits while the descriptor is blocked. Returns false
  // if the descriptor fails. Also returns false if the descriptor is blocked
  // after the destructor's time limit.
  bool WriteAll(const std::string& text) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if the destructor's time limit has passed.
  bool GivesUp() const ABSL_LOCKS_EXCLUDED(mu_);

  const int fd_;
  const Options options_;

  mutable absl::Mutex mu_;
  // Signalled when bytes_ becomes 0.
  mutable server::SteadyCondVar written_;
  // The total size in bytes of the lines that wait or are being written.
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t dropped_ ABSL_GUARDED_BY(mu_) = 0;
  // The end of the destructor's time limit, by base::SteadyNow(). The value is
  // InfiniteFuture() until the destructor sets this member.
  absl::Time give_up_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  // Declared last, so that it is destroyed first. The destructor of the worker
  // joins the worker's thread, which uses the members above.
  server::Worker worker_{{"log"}};
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_LOG_WRITER_H_
