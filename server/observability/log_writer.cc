#include "server/observability/log_writer.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/steady_clock.h"

namespace sfmamba::observability {
namespace {

// Most time that the destructor gives the waiting lines.
constexpr absl::Duration kLastWrites = absl::Milliseconds(200);
// Interval at which a thread that cannot write looks whether it must end.
constexpr absl::Duration kPollPeriod = absl::Milliseconds(50);
// Most bytes of one write: a pipe that is ready takes PIPE_BUF bytes without
// blocking, see pipe(7).
constexpr size_t kChunk = PIPE_BUF;

}  // namespace

LogWriter::LogWriter(int fd, const Options& options)
    : fd_(fd), options_(options) {}

LogWriter::~LogWriter() {
  absl::MutexLock lock(&mu_);
  give_up_ = base::SteadyNow() + kLastWrites;
}

void LogWriter::Write(std::string line, bool urgent) {
  // Errors still find room when a flood of requests has filled the queue.
  const size_t room =
      urgent ? options_.max_bytes + options_.max_bytes / 4 : options_.max_bytes;
  {
    absl::MutexLock lock(&mu_);
    if (bytes_ + line.size() > room) {
      ++dropped_;
      return;
    }
    bytes_ += line.size();
  }
  worker_.Push([this, line = std::move(line)](bool /*stopped*/) {
    const bool written = WriteAll(line);
    absl::MutexLock lock(&mu_);
    // Only now: a blocked descriptor must not let lines pile up.
    bytes_ -= line.size();
    if (!written) ++dropped_;
    if (bytes_ == 0) written_.SignalAll();
  });
}

bool LogWriter::Flush(absl::Duration limit) const {
  const auto is_written = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return bytes_ == 0;
  };
  absl::MutexLock lock(&mu_);
  return written_.Await(&mu_, limit, is_written);
}

int64_t LogWriter::TakeDropped() {
  absl::MutexLock lock(&mu_);
  return std::exchange(dropped_, 0);
}

bool LogWriter::WriteAll(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    pollfd ready = {fd_, POLLOUT, 0};
    // Once the time is up no line may wait: there may be thousands of them.
    const bool may_wait = !GivesUp();
    const absl::Duration wait = may_wait ? kPollPeriod : absl::ZeroDuration();
    if (poll(&ready, 1, absl::ToInt64Milliseconds(wait)) <= 0) {
      if (!may_wait) return false;
      continue;
    }
    const ssize_t size =
        write(fd_, text.data() + done, std::min(kChunk, text.size() - done));
    if (size >= 0) {
      done += size;
    } else if (errno != EINTR && errno != EAGAIN) {
      return false;
    } else if (GivesUp()) {
      return false;
    }
  }
  return true;
}

bool LogWriter::GivesUp() const {
  absl::MutexLock lock(&mu_);
  return base::SteadyNow() >= give_up_;
}

}  // namespace sfmamba::observability
