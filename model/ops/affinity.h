#ifndef SFMAMBA_MODEL_OPS_AFFINITY_H_
#define SFMAMBA_MODEL_OPS_AFFINITY_H_

#include <sys/types.h>

#include <vector>

namespace sfmamba::ops {

// Returns the processors that the calling thread may run on, ascending; none if
// the kernel does not say.
std::vector<int> ThreadProcessors();

// Lets the calling thread, and those that it starts from now on, run on
// `processors` only; those that the process may not use are left out. Nothing
// changes if the kernel refuses, which it does if none is left.
void BindThread(const std::vector<int>& processors);

// Lets the thread `id`, which may be waiting for its processor, go on on
// `processor`. Where it may run stays as it is; nothing happens if that is not
// there. The thread must not bind itself meanwhile.
void MoveThread(pid_t id, int processor);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_AFFINITY_H_
