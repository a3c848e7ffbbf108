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

// Measures the time that the work of a function takes on a CUDA device, with
// CUDA events. The function enqueues the work on a stream. Uses the device that
// is current at Create(). Not thread-safe.
class GpuTimer {
 public:
  struct Options {
    // The number of measurements. If they would take longer than `limit`, there
    // are fewer, but at least five.
    int repeats = 200;
    absl::Duration limit = absl::Milliseconds(200);
  };
  // Enqueues the work once. Must not allocate memory, synchronise or block.
  using Enqueue = std::function<absl::Status(CudaStream stream)>;

  static absl::StatusOr<std::unique_ptr<GpuTimer>> Create();
  virtual ~GpuTimer() = default;

  // Returns the microseconds that the work takes when it is repeated. Replays a
  // CUDA graph of ten repetitions, which excludes the CPU's launch overhead.
  // Inputs stay in the L2 cache if they fit.
  virtual absl::StatusOr<Quantiles> Warm(const Enqueue& enqueue,
                                         const Options& options) = 0;
  // Returns the microseconds that the work takes after the L2 cache has been
  // flushed. Launches the work directly, without a graph.
  virtual absl::StatusOr<Quantiles> Cold(const Enqueue& enqueue,
                                         const Options& options) = 0;

  // Returns the stream that the work runs on. Callers may enqueue other work on
  // it, such as copies before a measurement.
  virtual CudaStream stream() const = 0;
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_GPU_TIMER_CUDA_H_
