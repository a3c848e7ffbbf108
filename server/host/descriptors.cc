#include "server/host/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace sfmamba::server {

void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void FillStandardDescriptors() {
  int fd = -1;
  do {  // open() returns the lowest unused descriptor.
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

int DescriptorLimit() {
  rlimit limit = {};
  constexpr rlim_t kMost = std::numeric_limits<int>::max();
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<int>(std::min(limit.rlim_cur, kMost));
}

}  // namespace sfmamba::server
