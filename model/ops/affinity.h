#ifndef SFMAMBA_MODEL_OPS_AFFINITY_H_
#define SFMAMBA_MODEL_OPS_AFFINITY_H_

#include <sys/types.h>

#include <vector>

namespace sfmamba::ops {

// Returns the CPUs on which the calling thread may run, in ascending order.
// Returns an empty list if Linux does not report them.
std::vector<int> ThreadProcessors();

// Limits the calling thread, and the threads that it starts from now on, to the
// CPUs `processors`. Ignores CPUs that the process may not use. If none
// remains, or if Linux refuses, nothing changes.
void BindThread(const std::vector<int>& processors);

// Moves the thread `id` to the CPU `processor` at once, even if the thread is
// waiting for another CPU. Afterwards, the thread may run on the same CPUs as
// before. Does nothing if `processor` is not one of these. The thread must not
// call BindThread() at the same time.
void MoveThread(pid_t id, int processor);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_AFFINITY_H_
