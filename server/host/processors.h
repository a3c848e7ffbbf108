#ifndef SFMAMBA_SERVER_HOST_PROCESSORS_H_
#define SFMAMBA_SERVER_HOST_PROCESSORS_H_

#include <optional>
#include <string>

namespace sfmamba::server {

// Returns how many threads this process can run in parallel, at least 1. This
// number is the smaller of the number of CPUs in the affinity mask
// (sched_getaffinity) and the CPU quota of the control group. The quota is
// rounded down. For example, a quota of 2.5 CPUs allows 2 threads. With 3
// threads, the process could use up its quota before the end of the kernel's
// period. The kernel would then stop all threads until the next period.
// CgroupProcessors() documents the parameters.
int UsableProcessors(const std::string& membership = "/proc/self/cgroup",
                     const std::string& root = "/sys/fs/cgroup");

// Returns the CPU quota as a number of CPUs, such as 2.5. Returns nullopt if
// there is no quota or the quota cannot be read. The result is the smallest
// quota of the process's control group and the group's ancestors. Both version
// 2 (cpu.max) and version 1 (cpu.cfs_quota_us) are supported. `membership` is
// the path of /proc/self/cgroup, and `root` is the path of /sys/fs/cgroup.
// Groups that are not visible below `root` are skipped. For example, a
// container often sees only its own group. Source: the kernel's
// Documentation/admin-guide/cgroup-v2.rst and
// Documentation/scheduler/sched-bwc.rst.
std::optional<double> CgroupProcessors(const std::string& membership,
                                       const std::string& root);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_PROCESSORS_H_
