#ifndef SFMAMBA_SERVER_HOST_TOPOLOGY_H_
#define SFMAMBA_SERVER_HOST_TOPOLOGY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/processor_group.h"

namespace sfmamba::server {

// A processor, as the kernel numbers it, and what it shares with others.
struct Processor {
  int number = 0;
  int node = 0;   // The NUMA node.
  int cache = 0;  // The lowest processor with the same last cache.
  int core = 0;   // The lowest processor of the same core.
};

// Returns what the kernel says of the processors `allowed`, those that are near
// each other side by side: ordered by node, cache, core and number. `root` is
// what /sys/devices/system is. What cannot be read, as in some containers, is
// taken for one node and one cache, with a core for each processor. Source: the
// kernel's Documentation/ABI/stable/sysfs-devices-node and
// Documentation/ABI/testing/sysfs-devices-system-cpu.
std::vector<Processor> ReadTopology(const std::vector<int>& allowed,
                                    const std::string& root);

// Returns the processors that this process is allowed on; none if the kernel
// does not say.
std::vector<Processor> AllowedTopology();

// Returns the numbers of a list such as "0-3,8"; none if it is malformed, or if
// one is above 65535.
std::vector<int> ParseProcessorList(const std::string& list);

// How many batches run at once on the CPU if nothing is set, with `threads`
// threads in all: one up to 16 threads, since one batch on all of them is
// answered first. With more, each NUMA node has as few as give none more than
// 16 threads. At least 1, and never what CheckContexts() refuses.
int AutomaticContexts(absl::Span<const Processor> processors, int threads);

// INVALID_ARGUMENT, naming cpu_contexts, unless each context can have a core
// and one of the `threads` of its own.
absl::Status CheckContexts(absl::Span<const Processor> processors, int contexts,
                           int threads);

// Divides the processors, in ReadTopology()'s order, among `contexts` groups,
// and `threads` in proportion to them. No core is in two groups. If there are
// as many contexts as nodes or more, no group spans two nodes. `contexts` must
// be one that CheckContexts() lets pass.
std::vector<model::ProcessorGroup> MakeGroups(
    absl::Span<const Processor> processors, int contexts, int threads);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_TOPOLOGY_H_
