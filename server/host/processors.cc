#include "server/host/processors.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <thread>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sfmamba::server {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

// Returns the words of the first line of the file. Returns an empty vector if
// the file cannot be read.
std::vector<std::string> FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return absl::StrSplit(line, ' ', absl::SkipEmpty());
}

// Returns `quota` / `period` as a number of CPUs. `quota` is the CPU time that
// a control group may use in each period. Each argument is a list of words, of
// which only the first word is used. This word is a time in microseconds.
// Returns kNoQuota if the quota is "max" or -1, or if a list is empty.
double Quota(const std::vector<std::string>& quota,
             const std::vector<std::string>& period) {
  double time = 0, of = 0;
  if (quota.empty() || period.empty() || !absl::SimpleAtod(quota[0], &time) ||
      !absl::SimpleAtod(period[0], &of) || time <= 0 || of <= 0) {
    return kNoQuota;
  }
  return time / of;
}

// Returns the quota of the control group in `folder` as a number of CPUs.
double QuotaIn(const std::string& folder) {
  const std::vector<std::string> both = FirstLine(folder + "/cpu.max");
  if (both.size() == 2) return Quota({both[0]}, {both[1]});
  return Quota(FirstLine(folder + "/cpu.cfs_quota_us"),
               FirstLine(folder + "/cpu.cfs_period_us"));
}

// Returns the smallest CPU quota of a control group and all its ancestors.
// `path` names the group, for example "/a/b". `mount` is the folder of the root
// group.
double SmallestQuota(const std::string& mount, std::string path) {
  double smallest = QuotaIn(mount);
  while (path.size() > 1) {
    smallest = std::min(smallest, QuotaIn(mount + path));
    path.resize(path.rfind('/'));
  }
  return smallest;
}

int AllowedProcessors() {
  // sched_getaffinity fails if the machine has more CPUs than cpu_set_t holds.
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    return CPU_COUNT(&allowed);
  }
  return std::thread::hardware_concurrency();
}

}  // namespace

std::optional<double> CgroupProcessors(const std::string& membership,
                                       const std::string& root) {
  double smallest = kNoQuota;
  std::ifstream file(membership);
  for (std::string line; std::getline(file, line);) {
    // The format is "<number>:<controllers>:<path>". In cgroup version 2, the
    // number is 0 and the controllers are empty.
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[2].empty() || parts[2][0] != '/') continue;
    const std::string& path = parts[2];
    if (parts[0] == "0" && parts[1].empty()) {
      smallest = std::min(smallest, SmallestQuota(root, path));
      continue;
    }
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (!absl::c_linear_search(controllers, "cpu")) continue;
    // In cgroup version 1, controllers may be mounted together in one folder.
    // The folder is named after all of them, for example "cpu,cpuacct". Some
    // systems also have a link for each controller, for example "cpu".
    for (const std::string& mount : {parts[1], std::string("cpu")}) {
      smallest = std::min(smallest,
                          SmallestQuota(absl::StrCat(root, "/", mount), path));
    }
  }
  if (smallest == kNoQuota) return std::nullopt;
  return smallest;
}

int UsableProcessors(const std::string& membership, const std::string& root) {
  const double quota = CgroupProcessors(membership, root).value_or(kNoQuota);
  return std::max<int>(1, std::min<double>(AllowedProcessors(), quota));
}

}  // namespace sfmamba::server
