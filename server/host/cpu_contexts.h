#ifndef SFMAMBA_SERVER_HOST_CPU_CONTEXTS_H_
#define SFMAMBA_SERVER_HOST_CPU_CONTEXTS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/processor_group.h"
#include "server/host/topology.h"

namespace sfmamba::server {

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

#endif  // SFMAMBA_SERVER_HOST_CPU_CONTEXTS_H_
