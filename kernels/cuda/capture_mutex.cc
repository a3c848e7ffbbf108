#include "kernels/cuda/capture_mutex.h"

#include <map>

namespace sfmamba::kernels {

absl::Mutex& CaptureMutex(int gpu) {
  // These objects are never destroyed, because threads may still hold a mutex
  // while the process ends.
  static absl::Mutex& mu = *new absl::Mutex;
  static auto& mutexes = *new std::map<int, absl::Mutex>;
  absl::MutexLock lock(&mu);
  return mutexes[gpu];
}

}  // namespace sfmamba::kernels
