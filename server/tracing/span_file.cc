#include "server/tracing/span_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sfmamba::tracing {
namespace {

// Returns the error of a system call that was to do `what`. The message does
// not name the path, which only the configuration shows.
absl::Status FileError(absl::string_view what) {
  return absl::ErrnoToStatus(errno,
                             absl::StrCat("trace_file: it cannot be ", what));
}

}  // namespace

SpanFile::SpanFile(std::string path, int64_t max_bytes)
    : path_(std::move(path)), max_bytes_(max_bytes) {}

SpanFile::~SpanFile() { Close(); }

absl::Status SpanFile::Write(const std::string& request,
                             absl::FunctionRef<bool()> /*stop*/) {
  const std::string line = request + "\n";
  const int64_t bytes = line.size();
  if (bytes > max_bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("trace_file: got a line of ", bytes,
                     " bytes, expected at most ", max_bytes_));
  }
  absl::Status status = Open();
  if (status.ok() && size_ + bytes > max_bytes_) status = Rotate();
  if (status.ok()) status = Append(line);
  // The next write opens the file anew: this one may have been removed.
  if (!status.ok()) Close();
  return status;
}

absl::Status SpanFile::Open() {
  if (fd_ >= 0) return absl::OkStatus();
  // O_NONBLOCK keeps open() from waiting on a named pipe, which is refused
  // below.
  fd_ = open(path_.c_str(),
             O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
  if (fd_ < 0) return FileError("opened");
  struct stat file;
  if (fstat(fd_, &file) != 0) return FileError("opened");
  if (!S_ISREG(file.st_mode)) {
    return absl::FailedPreconditionError(
        "trace_file: got something else, expected a file");
  }
  size_ = file.st_size;
  return absl::OkStatus();
}

absl::Status SpanFile::Rotate() {
  Close();
  if (std::rename(path_.c_str(), absl::StrCat(path_, ".1").c_str()) != 0) {
    return FileError("renamed");
  }
  return Open();
}

absl::Status SpanFile::Append(const std::string& line) {
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = write(fd_, line.data() + done, line.size() - done);
    if (n >= 0) {
      done += n;
    } else if (errno != EINTR) {
      const absl::Status status = FileError("written to");
      // Half a line would spoil the next one. It stays if even this fails.
      std::ignore = ftruncate(fd_, size_);
      return status;
    }
  }
  size_ += line.size();
  return absl::OkStatus();
}

void SpanFile::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace sfmamba::tracing
