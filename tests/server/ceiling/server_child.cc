#include "tests/server/ceiling/server_child.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace sfmamba {

ServerChild::ServerChild(const std::function<void(const Listening&)>& serve) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve([&ends](const Ports& ports) {
      if (write(ends[1], &ports, sizeof(ports)) < 0) std::abort();
    });
  }
  close(ends[1]);
  if (read(ends[0], &ports_, sizeof(ports_)) != sizeof(ports_)) std::abort();
  close(ends[0]);
}

ServerChild::~ServerChild() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string ServerChild::address() const {
  return absl::StrCat("127.0.0.1:", ports_.grpc);
}

absl::Duration ServerChild::ProcessorTime() const {
  std::ifstream file(absl::StrCat("/proc/", pid_, "/stat"));
  std::string word;
  for (int i = 0; i < 13; ++i) file >> word;
  int64_t user = 0, system = 0;
  file >> user >> system;
  return absl::Seconds(user + system) / sysconf(_SC_CLK_TCK);
}

void RunOn(Processors processors) {
  if (processors == Processors::kAll) return;
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) std::abort();
  const int half = std::max(1, CPU_COUNT(&usable) / 2);
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  for (int i = 0, seen = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &usable)) continue;
    const bool is_first = seen++ < half;
    if (is_first == (processors == Processors::kFirstHalf)) CPU_SET(i, &chosen);
  }
  if (sched_setaffinity(0, sizeof(chosen), &chosen) != 0) std::abort();
}

absl::Duration OwnProcessorTime() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) +
         absl::DurationFromTimeval(usage.ru_stime);
}

}  // namespace sfmamba
