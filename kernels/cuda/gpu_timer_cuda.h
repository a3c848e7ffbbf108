#ifndef SFMAMBA_KERNELS_CUDA_GPU_TIMER_CUDA_H_
#define SFMAMBA_KERNELS_CUDA_GPU_TIMER_CUDA_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/cuda/quantiles.h"

namespace sfmamba::kernels {

// Times what a function enqueues on a CUDA device, by the device's own clock.
// For one thread; of the device that is current when it is made.
class GpuTimer {
 public:
  struct Options {
    // Measurements, and the time after which fewer will do.
    int repeats = 200;
    absl::Duration limit = absl::Milliseconds(200);
  };
  // Enqueues the work once. Must not allocate, synchronise or wait.
  using Enqueue = std::function<absl::Status(CudaStream stream)>;

  static absl::StatusOr<std::unique_ptr<GpuTimer>> Create();
  virtual ~GpuTimer() = default;

  // Microseconds of the work done over and over: a graph of ten is replayed, so
  // that the processor's time to launch stays out of it, and inputs that fit
  // are found in the L2 cache.
  virtual absl::StatusOr<Quantiles> Warm(const Enqueue& enqueue,
                                         const Options& options) = 0;
  // The same with the L2 cache flushed before each time.
  virtual absl::StatusOr<Quantiles> Cold(const Enqueue& enqueue,
                                         const Options& options) = 0;

  // For work of the caller's own, such as copies before a measurement.
  virtual CudaStream stream() const = 0;
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_GPU_TIMER_CUDA_H_
