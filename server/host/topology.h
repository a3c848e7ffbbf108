#ifndef SFMAMBA_SERVER_HOST_TOPOLOGY_H_
#define SFMAMBA_SERVER_HOST_TOPOLOGY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/processor_group.h"

namespace sfmamba::server {

// A logical CPU, and the hardware that this CPU shares with others. All members
// are numbers that the kernel assigns.
struct Processor {
  int number = 0;
  int node = 0;   // The number of the NUMA node.
  int cache = 0;  // The lowest number of a CPU with the same last-level cache.
  int core = 0;   // The lowest number of a CPU on the same physical core.
};

// Returns the kernel's description of the CPUs `allowed`, ordered by node,
// cache, core and number. Neighbours in this order are close to each other.
// `root` is the path of /sys/devices/system. If the files cannot be read, for
// example in some containers, the CPUs count as one node with one cache. Each
// CPU then counts as one core. Source: the kernel's
// Documentation/ABI/stable/sysfs-devices-node and
// Documentation/ABI/testing/sysfs-devices-system-cpu.
std::vector<Processor> ReadTopology(const std::vector<int>& allowed,
                                    const std::string& root);

// Returns the CPUs in this process's affinity mask. Returns an empty vector if
// the kernel does not report the mask.
std::vector<Processor> AllowedTopology();

// Parses a list such as "0-3,8". Returns an empty list if `list` is malformed
// or contains a number above 65535.
std::vector<int> ParseProcessorList(const std::string& list);

// Returns the default number of batches that run concurrently on the CPU, with
// `threads` threads in total. The default is 1 for up to 16 threads, because
// one batch on all threads has the lowest latency. For more threads, the
// default is a multiple of the number of NUMA nodes. It is the smallest
// multiple for which a batch has on average at most 16 threads. However, the
// default is never larger than the number of cores or `threads`.
// CheckContexts() accepts the default.
int AutomaticContexts(absl::Span<const Processor> processors, int threads);

// Checks that there are enough cores and threads for `contexts` contexts, each
// of which runs one batch at a time. Each context needs at least one core and
// one thread. `threads` is the total number of threads. Returns
// INVALID_ARGUMENT if there are too few cores or threads, or if `contexts` is
// below 1. The error message names the setting cpu_contexts.
absl::Status CheckContexts(absl::Span<const Processor> processors, int contexts,
                           int threads);

// Divides the CPUs into `contexts` groups. Also divides `threads` among these
// groups in proportion to the number of CPUs. The CPUs must be in the order of
// ReadTopology(). No core is in two groups. If there are at least as many
// contexts as nodes, no group spans two nodes. CheckContexts() must accept
// `contexts`.
std::vector<model::ProcessorGroup> MakeGroups(
    absl::Span<const Processor> processors, int contexts, int threads);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_TOPOLOGY_H_
