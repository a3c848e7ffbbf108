#ifndef SFMAMBA_KERNELS_CUDA_CAPTURE_MUTEX_H_
#define SFMAMBA_KERNELS_CUDA_CAPTURE_MUTEX_H_

#include "absl/synchronization/mutex.h"

namespace sfmamba::kernels {

// Returns the mutex of CUDA device `gpu`, which the whole process shares. While
// a thread records a CUDA graph on a device, no thread may synchronise with the
// whole device. Libraries do so when they time their algorithms. So threads
// lock the mutex exclusively to record a graph, and shared for work that may
// synchronise with the device. Replaying a graph does not need the mutex.
absl::Mutex& CaptureMutex(int gpu);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_CAPTURE_MUTEX_H_
