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

// The maximum time for which the destructor waits for queued lines.
constexpr absl::Duration kLastWrites = absl::Milliseconds(200);
// While the output is blocked, the writing thread checks at this interval
// whether it must stop.
constexpr absl::Duration kPollPeriod = absl::Milliseconds(50);
// The maximum size of one write() in bytes. If poll() reports that a pipe is
// ready, the pipe accepts PIPE_BUF bytes without blocking. See pipe(7).
constexpr size_t kChunk = PIPE_BUF;

}  // namespace

LogWriter::LogWriter(int fd, const Options& options)
    : fd_(fd), options_(options) {}

LogWriter::~LogWriter() {
  absl::MutexLock lock(&mu_);
  give_up_ = base::SteadyNow() + kLastWrites;
}

void LogWriter::Write(std::string line, bool urgent) {
  // Urgent lines may use more space, so that errors are not dropped when many
  // requests fill the queue.
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
    // Subtracts the size only after the line was written. The line that is
    // being written therefore still counts as queued. While the descriptor is
    // blocked, no size is subtracted. Write() then drops lines that would
    // exceed the limit of the queue.
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
    // After the destructor's time limit, this function no longer waits for a
    // blocked output. It drops the line instead. Thousands of lines may be
    // queued. If each of them waited even for one kPollPeriod, the destructor
    // could take minutes.
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
