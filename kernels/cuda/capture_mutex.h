#ifndef SFMAMBA_KERNELS_CUDA_CAPTURE_MUTEX_H_
#define SFMAMBA_KERNELS_CUDA_CAPTURE_MUTEX_H_

#include "absl/synchronization/mutex.h"

namespace sfmamba::kernels {

// The mutex of CUDA device `gpu`, one for the whole process. While a graph is
// recorded on a device no thread may wait for that whole device, as libraries
// do where they measure their algorithms: who records holds the mutex alone,
// who runs such work holds it shared. A replay needs neither.
absl::Mutex& CaptureMutex(int gpu);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_CAPTURE_MUTEX_H_
