#ifndef SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_LANE_CUDA_H_
#define SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_LANE_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/scan/scan_plan.h"
#include "kernels/scan/selective_scan.h"

namespace sfmamba::kernels {

// Implements ScanPlan::kLane for SelectiveScanCuda(), which has checked the
// arguments. Two channels per thread are possible only if the number of
// channels is even and the rows of u, dt and y are aligned to pairs of values.
// Otherwise each thread has one channel, with bit-identical results.
template <typename T>
absl::Status SelectiveScanLaneCuda(const SelectiveScanArgs<T>& args,
                                   const ScanPlan& plan, CudaStream stream);

// Returns the number of threads per block for the lane and chunk kernels, which
// need `threads` threads for all channels. If plan.threads is not 0, returns
// plan.threads. Otherwise returns the size that leaves the fewest threads idle.
// If there are several, returns the smallest, because smaller blocks spread a
// small batch over more multiprocessors.
int LaneBlockThreads(const ScanPlan& plan, int threads);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_LANE_CUDA_H_
