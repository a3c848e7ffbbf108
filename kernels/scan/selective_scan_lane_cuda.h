#ifndef SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_LANE_CUDA_H_
#define SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_LANE_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/scan/scan_plan.h"
#include "kernels/scan/selective_scan.h"

namespace sfmamba::kernels {

// SelectiveScanCuda's implementation of ScanPlan::kLane, called with checked
// arguments. Two channels per thread need an even number of channels and rows
// of u, dt and y that are aligned to pairs. Otherwise a thread takes one
// channel, with bit-identical results.
template <typename T>
absl::Status SelectiveScanLaneCuda(const SelectiveScanArgs<T>& args,
                                   const ScanPlan& plan, CudaStream stream);

// Returns the threads per block of the lane and chunk kernels when `threads`
// are needed in total: plan.threads unless that is 0. Otherwise it is the
// smallest of the sizes that leave the fewest threads idle, since smaller
// blocks spread a small batch over more multiprocessors.
int LaneBlockThreads(const ScanPlan& plan, int threads);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_LANE_CUDA_H_
