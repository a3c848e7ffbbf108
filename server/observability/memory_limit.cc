#include "server/observability/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace sfmamba::observability {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Returns the number that the file contains. Returns kNone if the file is
// missing or contains "max".
int64_t ReadLimit(const std::string& path) {
  int64_t limit = 0;
  return absl::SimpleAtoi(ReadAll(path), &limit) ? limit : kNone;
}

// Returns the size in bytes that /proc/meminfo contains for `name`, for example
// in the line "MemTotal:  16384 kB". Returns kNone if there is no such line.
int64_t MachineMemory(const std::string& root, absl::string_view name) {
  const std::string text = ReadAll(root + "/proc/meminfo");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    int64_t kilobytes = 0;
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, ":") &&
        absl::ConsumeSuffix(&line, "kB") &&
        absl::SimpleAtoi(line, &kilobytes)) {
      return kilobytes << 10;
    }
  }
  return kNone;
}

// Returns the smallest limit of the control group `path` and of its ancestors.
// `mount` is the folder where the control groups are mounted, for example
// "/sys/fs/cgroup". `path` is for example "/kubepods/pod1". `file` is the name
// of the file that contains a group's limit, for example "memory.max". Also
// reads the limit of the root group "/", because a container may see its own
// group as the root group.
int64_t GroupLimit(const std::string& mount, absl::string_view path,
                   absl::string_view file) {
  int64_t limit = kNone;
  while (true) {
    const std::string group = path == "/" ? "" : std::string(path);
    limit = std::min(limit, ReadLimit(absl::StrCat(mount, group, "/", file)));
    if (group.empty()) return limit;
    path = path.substr(0, path.rfind('/'));
  }
}

}  // namespace

int64_t MemoryLimit(const std::string& root) {
  // Starts with the machine's memory, because a group's limit may be larger
  // than this memory.
  int64_t limit = MachineMemory(root, "MemTotal");
  // The lines of /proc/self/cgroup have the form "0::/kubepods/pod1". In
  // version 1 of control groups, the form is "7:memory:/pod1".
  const std::string groups = ReadAll(root + "/proc/self/cgroup");
  for (absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::pair<absl::string_view, absl::string_view> rest =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const std::pair<absl::string_view, absl::string_view> group =
        absl::StrSplit(rest.second, absl::MaxSplits(':', 1));
    if (!absl::StartsWith(group.second, "/")) continue;
    const std::vector<absl::string_view> controllers =
        absl::StrSplit(group.first, ',');
    if (group.first.empty()) {
      limit = std::min(limit, GroupLimit(root + "/sys/fs/cgroup", group.second,
                                         "memory.max"));
    } else if (absl::c_linear_search(controllers, "memory")) {
      limit =
          std::min(limit, GroupLimit(root + "/sys/fs/cgroup/memory",
                                     group.second, "memory.limit_in_bytes"));
    }
  }
  return limit == kNone ? 0 : limit;
}

int64_t FreeMemory(int64_t kept, const std::string& root) {
  const int64_t limit = MemoryLimit(root);
  const int64_t available = MachineMemory(root, "MemAvailable");
  if (limit == 0) return available;
  return std::min(limit - ResidentMemory() - kept, available);
}

int64_t ResidentMemory() {
  // /proc/self/statm contains sizes in pages. The first number is the virtual
  // memory, and the second is the resident memory. See proc(5).
  const std::vector<std::string> sizes =
      absl::StrSplit(ReadAll("/proc/self/statm"), ' ');
  int64_t pages = 0;
  if (sizes.size() < 2 || !absl::SimpleAtoi(sizes[1], &pages)) return 0;
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace sfmamba::observability
