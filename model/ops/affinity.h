#ifndef SFMAMBA_MODEL_OPS_AFFINITY_H_
#define SFMAMBA_MODEL_OPS_AFFINITY_H_

#include <sys/types.h>

#include <vector>

namespace sfmamba::ops {

// Returns the processors that the calling thread may run on, in ascending
// order. Returns none if Linux does not tell.
std::vector<int> ThreadProcessors();

// Lets the calling thread, and the threads that it starts from now on, run on
// `processors` only. Processors that the process may not use are ignored. If
// none remains, or if Linux refuses, nothing changes.
void BindThread(const std::vector<int>& processors);

// Moves the thread `id` to `processor` at once, even if the thread is waiting
// for another processor. Afterwards the thread may run on the same processors
// as before. Does nothing if `processor` is not one of these. The thread must
// not bind itself at the same time.
void MoveThread(pid_t id, int processor);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_AFFINITY_H_
