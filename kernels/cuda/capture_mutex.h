#ifndef SFMAMBA_KERNELS_CUDA_CAPTURE_MUTEX_H_
#define SFMAMBA_KERNELS_CUDA_CAPTURE_MUTEX_H_

#include "absl/synchronization/mutex.h"

namespace sfmamba::kernels {

// Returns the mutex of CUDA device `gpu`, which the whole process shares. While
// a graph is recorded on a device, no thread may synchronise with the whole
// device, as libraries do when they time their algorithms. So recording a graph
// takes the mutex exclusively, and work that may synchronise with the device
// takes it shared. Replaying a graph needs neither.
absl::Mutex& CaptureMutex(int gpu);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_CAPTURE_MUTEX_H_
