#ifndef SFMAMBA_SERVER_HOST_PROCESSORS_H_
#define SFMAMBA_SERVER_HOST_PROCESSORS_H_

#include <optional>
#include <string>

namespace sfmamba::server {

// How many threads this process can run at the same time, at least 1: the
// processors that it is allowed on (sched_getaffinity), or its control group's
// quota of processor time if that is less. A quota is rounded down, because
// with one thread more all of them would be stopped whenever it is used up.
// `membership` and `root` as below.
int UsableProcessors(const std::string& membership = "/proc/self/cgroup",
                     const std::string& root = "/sys/fs/cgroup");

// The quota of processor time in processors, such as 2.5; none if there is none
// or it cannot be read. It is the smallest of the process's control group and
// the groups above it, of version 2 (cpu.max) and of version 1
// (cpu.cfs_quota_us). `membership` is what /proc/self/cgroup is, and `root`
// what /sys/fs/cgroup is. A group that is not visible below `root`, as in
// containers that see only their own, is skipped. Source: the kernel's
// Documentation/admin-guide/cgroup-v2.rst and
// Documentation/scheduler/sched-bwc.rst.
std::optional<double> CgroupProcessors(const std::string& membership,
                                       const std::string& root);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_PROCESSORS_H_
