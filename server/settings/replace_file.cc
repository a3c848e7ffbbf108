#include "server/settings/replace_file.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace sfmamba::server {

absl::Status ReplaceFile(const std::string& path, absl::string_view text) {
  const auto failed = [](const std::string& name) {
    const int error = errno;
    return absl::ErrnoToStatus(error, absl::StrCat(name, ": write"));
  };
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return failed(temporary);
  const bool written =
      write(fd, text.data(), text.size()) == ssize_t(text.size()) &&
      fchmod(fd, 0644) == 0 && fsync(fd) == 0;
  absl::Status status = written ? absl::OkStatus() : failed(temporary);
  close(fd);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = failed(path);
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace sfmamba::server
